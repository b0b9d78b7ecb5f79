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
	// informer is flyball's, nil when the type is not in the factory's scheme.
	informer func(*informer.SharedInformerFactory, informer.Scope) cache.SharedIndexInformer
}

// ofNamespace is a kind whose objects live in namespaces.
func ofNamespace[T informer.Object](resource schema.GroupVersionResource) kind {
	return kind{resource, reflect.TypeFor[T](), informerFor[T]}
}

// ofCluster is a kind whose objects live in none.
func ofCluster[T informer.Object](resource schema.GroupVersionResource) kind {
	return kind{resource, reflect.TypeFor[T](), func(f *informer.SharedInformerFactory, s informer.Scope) cache.SharedIndexInformer {
		s.Namespaces = []string{""}
		return informerFor[T](f, s)
	}}
}

func informerFor[T informer.Object](f *informer.SharedInformerFactory, s informer.Scope) cache.SharedIndexInformer {
	if f != nil {
		// A type that is not in the scheme would be misuse, which ends f's Run.
		if _, err := informer.KindOf[T](f.Scheme()); err != nil {
			return nil
		}
	}
	if len(s.Namespaces) == 0 && s.LabelSelector == "" && s.FieldSelector == "" {
		return clientgo.NewSharedIndexInformer(informer.For[T](f))
	}
	return clientgo.NewSharedIndexInformer(informer.For[T](f, s))
}
