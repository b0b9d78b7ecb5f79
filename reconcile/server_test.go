// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/kube"
)

type server struct {
	*informertest.Server[*appsv1.Deployment]
}

func newServer() server { return server{informertest.NewServer[*appsv1.Deployment]()} }

// get returns the object on the server, nil if it does not exist.
func (s server) get(name string) *appsv1.Deployment {
	d, _ := s.Get(kube.Key{Namespace: "prod", Name: name})
	return d
}

// remove requests deletion, as kubectl delete does.
func (s server) remove(name string) {
	d := s.get(name)
	d.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	s.Write(d)
}

func deployment(name string, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, Generation: 1}}
	for _, change := range changes {
		change(d)
	}
	return d
}

// watch returns a running informer of s; it ends with the test.
func watch(t *testing.T, s server) *informer.SharedInformer[*appsv1.Deployment] {
	t.Helper()
	i := newInformer(t, s)
	run(t, i)
	return i
}

func newInformer(t *testing.T, s server) *informer.SharedInformer[*appsv1.Deployment] {
	return informer.New[*appsv1.Deployment](s, appsv1.SchemeGroupVersion.WithKind("Deployment"), informer.Options{
		PagedLists: true, DetectMutations: informertest.NoMutations(t.Error),
	})
}

func run(t *testing.T, i *informer.SharedInformer[*appsv1.Deployment]) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	synctest.Wait()
}
