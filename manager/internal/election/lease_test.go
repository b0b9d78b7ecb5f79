// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/writegate"
	"github.com/flyball-dev/flyball/kube"
)

type leaseServer struct {
	answered func() // called after a write is stored, before its answer arrives

	lock    sync.Mutex
	is      *coordinationv1.Lease
	made    int
	version int
	fault   error // the answer to every request
}

func (s *leaseServer) notFound() error {
	return apierrors.NewNotFound(coordinationv1.Resource("leases"), "l")
}

// fail makes every request from now on fail.
func (s *leaseServer) fail(err error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.fault = err
}

func (s *leaseServer) store(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.lock.Lock()
	s.version++
	s.is = l.DeepCopy()
	s.is.ResourceVersion = fmt.Sprint(s.version)
	stored := s.is.DeepCopy()
	s.lock.Unlock()
	if s.answered != nil {
		s.answered()
	}
	return stored, nil
}

func (s *leaseServer) get(context.Context) (*coordinationv1.Lease, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	switch {
	case s.fault != nil:
		return nil, s.fault
	case s.is == nil:
		return nil, s.notFound()
	}
	return s.is.DeepCopy(), nil
}

func (s *leaseServer) create(_ context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.made++
	l.UID = types.UID(fmt.Sprint("uid-", s.made))
	return s.store(l)
}

func (s *leaseServer) update(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if _, err := s.get(ctx); err != nil {
		return nil, err
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
func leading(t *testing.T) (*lease, *leaseServer, coordinationv1.LeaseSpec) {
	server := &leaseServer{}
	l := &lease{client: server, reconnect: func() {}, key: kube.Key{Namespace: "default", Name: "l"}, gate: writegate.New(9 * time.Second)}
	l.setIdentity("me")
	record := coordinationv1.LeaseSpec{HolderIdentity: new("me"), LeaseDurationSeconds: new(int32(10))}
	if err := l.create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	return l, server, record
}

func (l *lease) mustWrite(t *testing.T, when string, want bool) {
	t.Helper()
	if _, err := l.gate.Ask(); (err == nil) != want {
		t.Errorf("%s: may write: %v; want %v", when, err, want)
	}
}

// The event of a deletion may arrive long after this process has created the Lease
// again.
func TestLease_LateNewsOfADeletionShutsNothing_M3(t *testing.T) {
	l, server, record := leading(t)
	first := server.delete()
	if err := l.update(t.Context(), record); !apierrors.IsNotFound(err) {
		t.Fatalf("a renewal of what is gone: %v", err)
	}
	if _, err := l.get(t.Context()); !apierrors.IsNotFound(err) {
		t.Fatalf("get = %v: nobody else held it", err)
	}
	if err := l.create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	l.gone(first)
	l.mustWrite(t, "after late news of the Lease before", true)
	l.gone(server.delete())
	l.mustWrite(t, "after its own Lease was deleted", false)
	l.gone(nil)
	if err := l.create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	l.mustWrite(t, "when it has made it anew", true)
	l.gone(nil)
	l.mustWrite(t, "after a deletion of which nothing is known", false)
}

// The watch may be faster than the answer to a write before the deletion.
func TestLease_RenewalOfADeletedLeaseOpensNothing_M3(t *testing.T) {
	for name, write := range map[string]func(*lease, coordinationv1.LeaseSpec) error{
		"renewed":   func(l *lease, r coordinationv1.LeaseSpec) error { return l.update(context.Background(), r) },
		"made anew": func(l *lease, r coordinationv1.LeaseSpec) error { return l.create(context.Background(), r) },
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
			if _, err := l.get(t.Context()); !apierrors.IsNotFound(err) {
				t.Errorf("get = %v, want that it is not there", err)
			}
			if err := l.update(t.Context(), record); err != nil {
				t.Errorf("make it anew: %v", err)
			}
			l.mustWrite(t, "when it has made it anew", true)
		})
	}
}

// The server stores a renewal at some time between its sending and its answer.
func TestLease_TermCountsFromTheSending_M3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reconnected := 0
		l := &lease{gate: writegate.New(9 * time.Second), reconnect: func() { reconnected++ }}
		slow := func() (*coordinationv1.Lease, error) {
			time.Sleep(4 * time.Second)
			return &coordinationv1.Lease{}, nil
		}
		if err := l.claim(t.Context(), nil, slow); err != nil {
			t.Fatal(err)
		}
		if left, err := l.gate.Ask(); left != 5*time.Second {
			t.Errorf("after a renewal that took 4s %v of 9s are left (%v), want 5s", left, err)
		}
		unknown := func() (*coordinationv1.Lease, error) { return nil, errors.New("connection reset") }
		if err := l.claim(t.Context(), nil, unknown); err == nil {
			t.Error("claim = nil, want the error")
		}
		if left, err := l.gate.Ask(); left != 5*time.Second {
			t.Errorf("a renewal of which nobody knows leaves %v (%v), want the 5s of the one before", left, err)
		}
		if reconnected != 1 {
			t.Errorf("%d connections were given up, want 1: who knows whether it still carries anything", reconnected)
		}
	})
}
