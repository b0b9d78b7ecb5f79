// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/clientgo"
)

// kind is one kind that has a generated informer.
type kind struct {
	resource schema.GroupVersionResource
	object   reflect.Type
	known    func(*informer.SharedInformerFactory) bool // the type is in its scheme
	informer func(*informer.SharedInformerFactory, informer.Scope, clientgo.Options) cache.SharedIndexInformer
}

// ofNamespace is a kind whose objects live in namespaces.
func ofNamespace[T informer.Object](resource schema.GroupVersionResource) kind {
	return kind{resource, reflect.TypeFor[T](), isKnown[T], informerFor[T]}
}

// ofCluster is a kind whose objects live in none.
func ofCluster[T informer.Object](resource schema.GroupVersionResource) kind {
	k := ofNamespace[T](resource)
	k.informer = func(f *informer.SharedInformerFactory, s informer.Scope, opts clientgo.Options) cache.SharedIndexInformer {
		s.Namespaces = []string{""}
		return informerFor[T](f, s, opts)
	}
	return k
}

// isKnown: a type that is not in the scheme would be misuse, which ends f's Run.
func isKnown[T informer.Object](f *informer.SharedInformerFactory) bool {
	if f == nil {
		return true // the informer says what is wrong
	}
	_, err := informer.KindOf[T](f.Scheme())
	return err == nil
}

// informerFor is an informer that Start has watched. Until then a transform may
// be set, though the flyball factory runs.
func informerFor[T informer.Object](f *informer.SharedInformerFactory, s informer.Scope, opts clientgo.Options) cache.SharedIndexInformer {
	s.Deferred = true
	return clientgo.NewSharedIndexInformer(informer.For[T](f, s), opts)
}
