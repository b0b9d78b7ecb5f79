// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package protoplan

import (
	"math/rand/v2"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/share"
)

// A selection decodes what clearing the rest of the whole object leaves.
func TestPlan_SelectionIsThePrunedObject_D4(t *testing.T) {
	for _, test := range []struct {
		of    reflect.Type
		paths []string
	}{
		{reflect.TypeFor[corev1.Pod](), nil},
		{reflect.TypeFor[corev1.Pod](), []string{"spec.nodeName", "status.phase"}},
		{reflect.TypeFor[corev1.Pod](), []string{"spec.containers.image", "spec.volumes.configMap.name", "status.conditions"}},
		{reflect.TypeFor[corev1.Pod](), []string{"spec.volumes.name", "spec.securityContext.runAsUser", "spec.containers.ports.containerPort", "metadata.annotations"}},
		{reflect.TypeFor[corev1.Pod](), []string{"spec.containers.livenessProbe.httpGet.port", "spec.containers.resources", "metadata.managedFields"}},
		{reflect.TypeFor[corev1.Service](), []string{"spec.ports.targetPort", "status.loadBalancer.ingress.ip"}},
		{reflect.TypeFor[appsv1.Deployment](), []string{"spec.template.metadata.name", "spec.template.spec.containers.image", "spec.replicas"}},
		{reflect.TypeFor[appsv1.Deployment](), []string{"spec.template.metadata.labels", "spec.strategy.rollingUpdate.maxSurge"}},
		{reflect.TypeFor[corev1.Secret](), []string{"type"}},
	} {
		sel, err := fields.Parse(test.paths...)
		if err == nil {
			err = sel.Resolve(test.of)
		}
		if err != nil {
			t.Fatal(err)
		}
		var plans Plans
		whole, err := plans.Of(test.of, nil) // the plans of a factory have messages in common
		if err != nil {
			t.Fatal(err)
		}
		plan, err := plans.Of(test.of, sel)
		if err != nil {
			t.Fatal(err)
		}
		table := share.NewTable()
		for i := range 20 {
			obj := reflect.New(test.of)
			filler{rand.New(rand.NewPCG(7, uint64(i/4))), i%2 == 0}.fill(obj.Elem(), 0)
			raw, err := obj.Interface().(protobuf).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			opts := Options{Table: table, ManagedFields: true}
			got, want, full := reflect.New(test.of), reflect.New(test.of), reflect.New(test.of)
			if _, err := plan.Decode(raw, got.Interface(), opts); err != nil {
				t.Fatal(err)
			}
			if _, err := whole.Decode(raw, full.Interface(), opts); err != nil {
				t.Fatal(err)
			}
			if err := want.Interface().(protobuf).Unmarshal(raw); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(full.Interface(), want.Interface()) {
				t.Fatalf("%v: the whole object has lost fields to the selection", test.paths)
			}
			fields.Prune(want.Interface(), sel)
			if !reflect.DeepEqual(got.Interface(), want.Interface()) {
				t.Fatalf("%v of %s:\n got %+v\nwant %+v", test.paths, test.of, got.Interface(), want.Interface())
			}
		}
	}
}
