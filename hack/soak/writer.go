// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/kube"
)

var namespaces = []string{"soak-a", "soak-b", "soak-c"}

const (
	// names per kind and namespace: few, so each is written often.
	names = 25
	// writeWithin bounds a write; a server that is down never answers some.
	writeWithin = time.Second
)

// part is a custom resource, as a plain struct.
type part struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Value             string `json:"value,omitempty"`
}

func (p *part) DeepCopyObject() runtime.Object {
	out := *p
	p.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

var partKind = schema.GroupVersionKind{Group: "soak.flyball.dev", Version: "v1", Kind: "Part"}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(partKind, &part{})
	return scheme, clientscheme.AddToScheme(scheme)
}

// write writes at random until ctx ends, whatever the server does, and counts the writes
// that the server has confirmed.
func (s *soak) write(ctx context.Context, stream uint64) {
	random := rand.New(rand.NewPCG(s.Seed, stream))
	for ctx.Err() == nil {
		s.turns <- struct{}{}
		err := s.change(ctx, random, anyObject(random))
		<-s.turns
		wait := time.Duration(random.Int64N(int64(8 * time.Millisecond)))
		if err != nil {
			wait += 20 * time.Millisecond // it exists, or is gone, or the server is down
		} else {
			s.report.writes.Add(1)
		}
		pause(ctx, wait)
	}
}

// change creates, updates, recolors or deletes obj.
func (s *soak) change(ctx context.Context, random *rand.Rand, obj kube.Object) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	what, color := random.IntN(10), []string{"red", "blue"}[random.IntN(2)]
	if what < 2 {
		return s.outside.Delete(ctx, obj)
	}
	if what < 4 {
		return s.outside.Create(ctx, obj)
	}
	if err := s.outside.Get(ctx, kube.KeyOf(obj), obj); err != nil {
		obj.SetResourceVersion("")
		return s.outside.Create(ctx, obj)
	}
	obj.SetAnnotations(map[string]string{"written": strconv.Itoa(random.IntN(1 << 30))})
	obj.SetLabels(map[string]string{"color": color})
	return s.outside.Update(ctx, obj)
}

func anyObject(random *rand.Rand) kube.Object {
	meta := metav1.ObjectMeta{
		Namespace: namespaces[random.IntN(len(namespaces))],
		Name:      fmt.Sprintf("o-%d", random.IntN(names)),
		Labels:    map[string]string{"color": []string{"red", "blue"}[random.IntN(2)]},
	}
	switch random.IntN(4) {
	case 0:
		return &corev1.Secret{ObjectMeta: meta}
	case 1:
		return &part{ObjectMeta: meta}
	case 2:
		app := map[string]string{"app": meta.Name}
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
			},
		}}
	}
	return &corev1.ConfigMap{ObjectMeta: meta}
}
