// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package simtest provides a simulated API server for a test.
//
//	server := simtest.New(t, scheme, site)       // 2 ms, no port, no binaries
//	mgr, err := manager.New(manager.Options{Config: server.Config, Scheme: scheme, MetricsAddress: "0", HealthAddress: "0"})
//	err = server.Client.Get(ctx, kube.KeyOf(site), site)
//
// It works inside and outside a testing/synctest bubble. To test with faults, see
// package kit; for the real server, package envtest.
//
// # Testing
//
// The tests cover both.
package simtest

import (
	"cmp"
	"context"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate"
)

// Server is a running simulated API server.
type Server struct {
	*simulate.Server
	// Config for managers and clientsets.
	Config *rest.Config
	// Client for the test.
	Client *client.Client
}

// New returns a server with the given objects, which runs until t and its cleanups have
// ended. scheme has the Go types; nil means that of client-go.
// CustomResourceDefinitions among the objects are installed. Other kinds of the scheme
// in groups that the server does not have are served without a schema, as namespaced
// unless an object of the kind has no namespace. Namespaces of the objects exist. The
// objects are stored as they are, with their status; the server sets UID and version.
// New does not modify or keep them. Errors fail t.
func New(t testing.TB, scheme *runtime.Scheme, objects ...runtime.Object) *Server {
	t.Helper()
	scheme = cmp.Or(scheme, clientscheme.Scheme)
	given := make([]runtime.Object, 0, len(objects))
	clustered, defined := map[schema.GroupKind]bool{}, map[string]bool{}
	var namespaces []string
	for _, obj := range objects {
		obj, err := named(scheme, obj)
		if err != nil {
			t.Fatalf("simtest.New: %v", err)
		}
		given = append(given, obj)
		m := obj.(metav1.Object)
		if m.GetNamespace() != "" {
			namespaces = append(namespaces, m.GetNamespace())
		} else {
			clustered[obj.GetObjectKind().GroupVersionKind().GroupKind()] = true
		}
		if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
			defined[crd.Spec.Group] = true
		}
	}
	s := &Server{Server: simulate.New(simulate.Options{Namespaces: namespaces})}
	s.install(scheme, clustered, defined)
	for _, obj := range given {
		if _, err := s.Put(obj); err != nil {
			t.Fatalf("simtest.New: %v", err)
		}
	}
	s.serve(t, scheme)
	return s
}

func named(scheme *runtime.Scheme, obj runtime.Object) (runtime.Object, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		obj = kube.Copy(u)
	} else {
		obj = obj.DeepCopyObject()
	}
	if obj.GetObjectKind().GroupVersionKind().Empty() {
		kinds, _, err := scheme.ObjectKinds(obj)
		if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok && err != nil {
			crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
			return obj, nil
		}
		if err != nil {
			return nil, err
		}
		obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	return obj, nil
}

// install serves the kinds of groups that are neither served nor defined.
func (s *Server) install(scheme *runtime.Scheme, clustered map[schema.GroupKind]bool, skip map[string]bool) {
	for _, kind := range s.Kinds() {
		skip[kind.Group] = true
	}
	for kind := range scheme.AllKnownTypes() {
		if skip[kind.Group] || kind.Version == runtime.APIVersionInternal {
			continue
		}
		obj, err := scheme.New(kind)
		if err != nil {
			continue
		}
		if _, ok := obj.(metav1.Object); ok {
			s.Install(simulate.Kind{GroupVersionKind: kind, Namespaced: !clustered[kind.GroupKind()]})
		}
	}
}

// serve runs the server on an in-memory network until t has ended.
func (s *Server) serve(t testing.TB, scheme *runtime.Scheme) {
	t.Helper()
	network := simulate.NewNetwork()
	transport := network.Transport()
	s.Config = &rest.Config{Host: "http://simulated", Transport: transport, QPS: -1}
	var err error
	if s.Client, err = client.New(s.Config, scheme, client.Options{}); err != nil {
		t.Fatalf("simtest.New: %v", err)
	}
	ctx, end := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Run(ctx, network.Listener()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		end()
		serving.Wait()
		transport.CloseIdleConnections()
	})
}
