// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/resource"
	"github.com/flyball-dev/flyball/webhook"
)

var (
	lampV1      = schema.GroupVersion{Group: "example.com", Version: "v1"}
	lampV1beta1 = schema.GroupVersion{Group: "example.com", Version: "v1beta1"}
)

// Lamp is the hub.
type Lamp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Brightness int32  `json:"brightness"`
		Color      string `json:"color,omitempty"`
	} `json:"spec"`
}

// OldLamp is the version v1beta1, which has no color. In a program it is a Lamp, too, in a
// package of that version.
type OldLamp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Percent int32 `json:"percent"`
	} `json:"spec"`
}

var lamps, oldLamps = resource.Define[Lamp](lampV1), resource.Define[OldLamp](lampV1beta1)

func (l *Lamp) DeepCopyObject() runtime.Object { return lamps.DeepCopy(l) }

func (l *OldLamp) DeepCopyObject() runtime.Object { return oldLamps.DeepCopy(l) }

var conversion = resource.Convert(lampV1beta1, lampV1, toV1, fromV1)

func toV1(from *OldLamp, to *Lamp) error {
	to.Spec.Brightness = from.Spec.Percent
	return nil
}

func fromV1(from *Lamp, to *OldLamp) error {
	to.Spec.Percent = from.Spec.Brightness
	return nil
}

func addConversions(mgr *manager.Manager) {
	webhook.Convert(mgr.Webhooks(), webhook.Spoke(conversion.ToHub, conversion.FromHub))
}

var _ = addConversions // main calls it

// A client of the former version changes a lamp, whose color it does not know.
func ExampleConvert() {
	lamp, old, again := &Lamp{}, &OldLamp{}, &Lamp{}
	lamp.Spec.Brightness, lamp.Spec.Color = 70, "red"

	if err := conversion.FromHub(lamp, old); err != nil {
		fmt.Println(err)
	}
	fmt.Println(old.Spec, old.Annotations)
	old.Spec.Percent = 20
	if err := conversion.ToHub(old, again); err != nil {
		fmt.Println(err)
	}
	fmt.Println(again.Spec, again.Annotations)
	// Output:
	// {70} map[flyball.dev/only-in-v1:[{"path":"/spec/color","is":"red"}]]
	// {20 red} map[]
}
