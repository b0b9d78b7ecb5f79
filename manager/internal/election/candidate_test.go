// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/internal/writegate"
	"github.com/flyball-dev/flyball/kube"
)

// candidateOf returns a candidate for the Lease of a server.
func candidateOf(server *leaseServer, changed func(string)) *candidate {
	l := &lease{client: server, reconnect: func() {}, key: kube.Key{Namespace: "default", Name: "l"}, gate: writegate.New(9 * time.Second)}
	l.setIdentity("me")
	l.begin(func(error) {})
	return &candidate{lease: l, changed: changed, opts: Options{LeaseDuration: 10 * time.Second, RenewDeadline: 6 * time.Second, RetryPeriod: 2 * time.Second}}
}

// Another process's Lease is taken when it has not changed for as long as it says, whatever
// the times in it are; until then each change begins the wait anew.
func TestCandidate_TakesALeaseThatIsNotRenewed_M3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, begin := &leaseServer{}, time.Now()
		old := metav1.NewMicroTime(begin.Add(-time.Hour))
		other := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("other"), LeaseDurationSeconds: new(int32(20)), RenewTime: &old, LeaseTransitions: new(int32(4))}}
		if _, err := server.store(other); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(9*time.Second, func() {
			renewed := other.DeepCopy()
			renewed.Spec.RenewTime = new(metav1.NewMicroTime(old.Add(time.Second)))
			_, _ = server.store(renewed)
		})
		var leaders []string
		c := candidateOf(server, func(leader string) { leaders = append(leaders, leader) })
		if !c.acquire(t.Context()) {
			t.Fatal("acquire = false, want the lease")
		}
		if took := time.Since(begin); took < 29*time.Second || took > 40*time.Second {
			t.Errorf("the lease is taken after %v, want 20s after the renewal at 9s was seen, and a try later", took)
		}
		if is := server.is.Spec; *is.HolderIdentity != "me" || *is.LeaseTransitions != 5 || *is.LeaseDurationSeconds != 10 || !is.AcquireTime.Equal(is.RenewTime) {
			t.Errorf("the Lease is %+v, want me, the fifth, for 10s", is)
		}
		if len(leaders) != 2 || leaders[0] != "other" || leaders[1] != "me" {
			t.Errorf("the leaders were %v, want other and me", leaders)
		}
	})
}

func TestCandidate_RenewsUntilTheDeadline_M3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &leaseServer{}
		c := candidateOf(server, func(string) {})
		if !c.acquire(t.Context()) || *server.is.Spec.LeaseTransitions != 0 {
			t.Fatalf("the Lease is %+v, want one that was created", server.is)
		}
		acquired, begin := server.is.Spec.AcquireTime.Time, time.Now()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		time.AfterFunc(21*time.Second, func() { server.fail(errors.New("connection refused")) })
		c.renew(ctx)
		if is := server.is.Spec; !is.AcquireTime.Time.Equal(acquired) || !is.RenewTime.Time.Equal(begin.Add(20*time.Second)) || *is.LeaseTransitions != 0 {
			t.Errorf("the Lease is %+v, want it renewed after 20s, and acquired when it was", is)
		}
		if took := time.Since(begin); took != 28*time.Second {
			t.Errorf("renewing ends after %v, want 28s: 6s of tries that begin 2s after the last renewal", took)
		}
	})
}
