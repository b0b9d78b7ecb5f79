// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/informer"
)

// kind is a kind with a generated informer.
type kind struct {
	resource schema.GroupVersionResource
	like     runtime.Object
	cluster  bool // scoped to the cluster
}

func (k kind) object() reflect.Type { return reflect.TypeOf(k.like) }

// known reports whether the kind is in f's scheme; if not, asking f for it would end f's
// Run.
func (k kind) known(f *informer.SharedInformerFactory) bool {
	if f == nil {
		return true // the informer reports the nil factory
	}
	_, _, err := f.Scheme().ObjectKinds(k.like)
	return err == nil
}

// informer returns an informer that Start watches. Until then a transform can be set, even
// while the flyball factory runs.
func (k kind) informer(f *informer.SharedInformerFactory, s informer.Scope, opts clientgo.Options) cache.SharedIndexInformer {
	s.Deferred = true
	if k.cluster {
		s.Namespaces = []string{""}
	}
	like := k.like
	if f != nil {
		if kinds, _, err := f.Scheme().ObjectKinds(like); err == nil && len(kinds) > 1 {
			like = like.DeepCopyObject() // registered for several kinds: it is the first
			like.GetObjectKind().SetGroupVersionKind(kinds[0])
		}
	}
	return clientgo.NewSharedIndexInformer(informer.ForObject(f, like, s), opts)
}
