// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

var (
	version     = schema.GroupVersion{Group: "zoo.example.dev", Version: "v1"}
	diskVersion = schema.GroupVersion{Group: "disk.example.dev", Version: "v1"}
)

// custom is a resource whose spec and status have no pointers, slices or maps.
type custom[S, T any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   S `json:"spec"`
	Status T `json:"status,omitzero"`
}

func (r *custom[S, T]) DeepCopyObject() runtime.Object {
	out := *r
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// list is required by the scheme.
type list[S, T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []custom[S, T] `json:"items"`
}

func (l *list[S, T]) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*custom[S, T]))
	}
	return &out
}

type (
	page  = custom[pageSpec, pageStatus]
	store = custom[storeSpec, storeStatus]
	pool  = custom[poolSpec, poolStatus]
	// volume represents a PersistentVolumeClaim, without its protection.
	volume = custom[volumeSpec, struct{}]
)

type pageSpec struct {
	Content string `json:"content"`
	// Flavor of the child is immutable: the child is replaced.
	Flavor string `json:"flavor"`
}

type pageStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

type storeSpec struct {
	Size int64 `json:"size"`
}

type storeStatus struct {
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	Bucket             string `json:"bucket,omitempty"`
}

type poolSpec struct {
	Workers int64 `json:"workers"`
}

type poolStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	Active             int64 `json:"active"`
}

type volumeSpec struct {
	Gigabytes int64 `json:"gigabytes"`
}

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	add(s, version, "Page", &page{}, &list[pageSpec, pageStatus]{})
	add(s, version, "Store", &store{}, &list[storeSpec, storeStatus]{})
	add(s, version, "Pool", &pool{}, &list[poolSpec, poolStatus]{})
	add(s, diskVersion, "Volume", &volume{}, &list[volumeSpec, struct{}]{})
	metav1.AddToGroupVersion(s, version)
	metav1.AddToGroupVersion(s, diskVersion)
	return s
}()

func add(s *runtime.Scheme, of schema.GroupVersion, kind string, object, list runtime.Object) {
	s.AddKnownTypeWithName(of.WithKind(kind), object)
	s.AddKnownTypeWithName(of.WithKind(kind+"List"), list)
}

// current returns an error unless obj still exists: a child of a deleted owner is
// garbage-collected at once, and created again for as long as the cache has not seen
// the deletion.
func current(ctx context.Context, c *client.Client, obj, now kube.Object) error {
	if err := c.Get(ctx, kube.KeyOf(obj), now); err != nil {
		return err
	}
	if now.GetUID() != obj.GetUID() {
		return fmt.Errorf("%s is another one by now", obj.GetName())
	}
	return nil
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}
