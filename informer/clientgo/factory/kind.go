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

// kind is a kind with a generated informer.
type kind struct {
	resource schema.GroupVersionResource
	object   reflect.Type
	known    func(*informer.SharedInformerFactory) bool // reports whether the type is in its scheme
	informer func(*informer.SharedInformerFactory, informer.Scope, clientgo.Options) cache.SharedIndexInformer
}

func ofNamespace[T informer.Object](resource schema.GroupVersionResource) kind {
	return kind{resource, reflect.TypeFor[T](), isKnown[T], informerFor[T]}
}

func ofCluster[T informer.Object](resource schema.GroupVersionResource) kind {
	k := ofNamespace[T](resource)
	k.informer = func(f *informer.SharedInformerFactory, s informer.Scope, opts clientgo.Options) cache.SharedIndexInformer {
		s.Namespaces = []string{""}
		return informerFor[T](f, s, opts)
	}
	return k
}

// isKnown reports whether T is in the scheme; if not, asking f for it would end
// f's Run.
func isKnown[T informer.Object](f *informer.SharedInformerFactory) bool {
	if f == nil {
		return true // the informer reports the nil factory
	}
	_, err := informer.KindOf[T](f.Scheme())
	return err == nil
}

// informerFor returns an informer that Start watches. Until then a transform
// can be set, even while the flyball factory runs.
func informerFor[T informer.Object](f *informer.SharedInformerFactory, s informer.Scope, opts clientgo.Options) cache.SharedIndexInformer {
	s.Deferred = true
	return clientgo.NewSharedIndexInformer(informer.For[T](f, s), opts)
}
