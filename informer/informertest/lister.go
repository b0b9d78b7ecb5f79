// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"cmp"
	"context"
	"reflect"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// ListerOf returns a Lister of the given objects, for testing a reconciler
// without a server:
//
//	r := websiteReconciler{websites: informertest.ListerOf(site), client: …}
//	result, err := r.Reconcile(ctx, kube.KeyOf(site))
//
// It holds copies with their UIDs and versions; an object without a version
// gets one. Of two objects with one key the later counts. The Lister never
// changes and has no indices: for those, run an informer on a Server. It leaves
// nothing running and works in a synctest bubble.
func ListerOf[T kube.Object](objects ...T) informer.Lister[T] {
	server := NewServer[T]()
	for _, obj := range objects {
		server.place(kube.Copy(obj))
	}
	shared := informer.New(server, kindOf[T](objects), informer.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = shared.Run(ctx) }) // only the cancel ends it
	<-shared.Synced()
	cancel()
	running.Wait()
	return shared.Lister()
}

// place stores obj unchanged.
func (s *Server[T]) place(obj T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.revision++
	if version, err := strconv.Atoi(obj.GetResourceVersion()); err == nil {
		s.mu.revision = max(s.mu.revision, version)
	} else {
		obj.SetResourceVersion(strconv.Itoa(s.mu.revision))
	}
	item := itemOf(obj)
	item.UID, item.ResourceVersion = obj.GetUID(), obj.GetResourceVersion()
	s.mu.objects[item.Key] = item
}

// kindOf returns the kind of the objects, for errors.
func kindOf[T kube.Object](objects []T) schema.GroupVersionKind {
	for _, obj := range objects {
		if kind := obj.GetObjectKind().GroupVersionKind(); !kind.Empty() {
			return kind
		}
	}
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		return schema.GroupVersionKind{Kind: t.Name()}
	}
	if obj, ok := reflect.New(t.Elem()).Interface().(T); ok {
		if kinds, _, err := scheme.Scheme.ObjectKinds(obj); err == nil {
			return kinds[0]
		}
	}
	return schema.GroupVersionKind{Version: "v1", Kind: cmp.Or(t.Elem().Name(), "Object")}
}
