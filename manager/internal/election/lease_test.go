// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	leases "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/flyball-dev/flyball/informer"
)

type leaseServer struct {
	leases.LeaseInterface
	is       *coordinationv1.Lease
	made     int
	version  int
	answered func() // called after a write is stored, before its answer arrives
}

func (s *leaseServer) notFound() error {
	return apierrors.NewNotFound(coordinationv1.Resource("leases"), "l")
}

func (s *leaseServer) store(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.version++
	s.is = l.DeepCopy()
	s.is.ResourceVersion = fmt.Sprint(s.version)
	stored := s.is.DeepCopy()
	if s.answered != nil {
		s.answered()
	}
	return stored, nil
}

func (s *leaseServer) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	if s.is == nil {
		return nil, s.notFound()
	}
	return s.is.DeepCopy(), nil
}

func (s *leaseServer) Create(_ context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	s.made++
	l.UID = types.UID(fmt.Sprint("uid-", s.made))
	return s.store(l)
}

func (s *leaseServer) Update(_ context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if s.is == nil {
		return nil, s.notFound()
	}
	return s.store(l)
}

// delete deletes the Lease and returns the object of the watch event.
func (s *leaseServer) delete() *coordinationv1.Lease {
	was := s.is
	s.version++
	s.is = nil
	return was
}

// leading returns a lease held by "me".
func leading(t *testing.T) (*lease, *leaseServer, resourcelock.LeaderElectionRecord) {
	server := &leaseServer{}
	l := &lease{client: server, reconnect: func() {}, key: informer.Key{Namespace: "default", Name: "l"}, gate: newGate(9 * time.Second)}
	l.setIdentity("me")
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 10}
	if err := l.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	return l, server, record
}

func (l *lease) mustWrite(t *testing.T, when string, want bool) {
	t.Helper()
	if _, err := l.gate.ask(); (err == nil) != want {
		t.Errorf("%s: may write: %v; want %v", when, err, want)
	}
}

// The event of a deletion may arrive long after this process has created the Lease
// again.
func TestLease_LateNewsOfADeletionShutsNothing_M3(t *testing.T) {
	l, server, record := leading(t)
	first := server.delete()
	if err := l.Update(t.Context(), record); !apierrors.IsNotFound(err) {
		t.Fatalf("a renewal of what is gone: %v", err)
	}
	if _, _, err := l.Get(t.Context()); !apierrors.IsNotFound(err) {
		t.Fatalf("Get = %v: nobody else held it", err)
	}
	if err := l.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	l.gone(first)
	l.mustWrite(t, "after late news of the Lease before", true)
	l.gone(server.delete())
	l.mustWrite(t, "after its own Lease was deleted", false)
	l.gone(nil)
	if err := l.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	l.mustWrite(t, "when it has made it anew", true)
	l.gone(nil)
	l.mustWrite(t, "after a deletion of which nothing is known", false)
}

// The watch may be faster than the answer to a write before the deletion.
func TestLease_RenewalOfADeletedLeaseOpensNothing_M3(t *testing.T) {
	for name, write := range map[string]func(*lease, resourcelock.LeaderElectionRecord) error{
		"renewed":   func(l *lease, r resourcelock.LeaderElectionRecord) error { return l.Update(context.Background(), r) },
		"made anew": func(l *lease, r resourcelock.LeaderElectionRecord) error { return l.Create(context.Background(), r) },
	} {
		t.Run(name, func(t *testing.T) {
			l, server, record := leading(t)
			if name == "made anew" {
				l.gone(server.delete())
			}
			server.answered = func() { l.gone(server.delete()) }
			err := write(l, record)
			if err == nil || errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want an error: the Lease is gone", name, err)
			}
			l.mustWrite(t, "after the answer of a deleted Lease", false)
			server.answered = nil
			if _, _, err := l.Get(t.Context()); !apierrors.IsNotFound(err) {
				t.Errorf("Get = %v, want that it is not there", err)
			}
			if err := l.Update(t.Context(), record); err != nil {
				t.Errorf("make it anew: %v", err)
			}
			l.mustWrite(t, "when it has made it anew", true)
		})
	}
}
