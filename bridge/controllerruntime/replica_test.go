// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	flyball "github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// A reconcile in flight when the process is asked to end may go on: its context and its writes are
// good. It ends in time if it heeds its context. One that does not is cut off, and the Leases are
// kept.
func TestSharded_ReconcilesInFlightMayEnd_G18(t *testing.T) {
	for name, row := range map[string]struct {
		work, takes time.Duration // work 0: until its context ends
		heeded      bool          // its context has ended by then
		lost        bool          // so has what it may write
	}{
		"short":                  {work: 8 * time.Second, takes: 8 * time.Second},
		"until its context ends": {takes: 20 * time.Second, heeded: true},
		"without end":            {work: time.Minute, takes: 30 * time.Second, heeded: true, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				simulated := simtest.New(t, nil, configMap("n-1-team", "a", nil))
				began, wrote := make(chan time.Time, 9), make(chan error, 1)
				stop, ended := startLone(t, simulated, func(ctx context.Context, cl client.Client) {
					began <- time.Now()
					if time.Sleep(row.work); row.work == 0 {
						<-ctx.Done()
					}
					if heeded := ctx.Err() != nil; heeded != row.heeded {
						t.Errorf("the context has ended: %v (%v), want %v", heeded, context.Cause(ctx), row.heeded)
					}
					wrote <- cl.Create(context.WithoutCancel(ctx), configMap("default", "late", nil))
				})
				<-began
				asked := time.Now()
				stop()
				err := <-ended
				if took := time.Since(asked); took < row.takes || took > row.takes+time.Second {
					t.Errorf("the manager has ended after %s, want %s and some requests", took, row.takes)
				}
				if late := err != nil && strings.Contains(err.Error(), "grace period"); late != row.lost || err != nil && !late {
					t.Errorf("Start = %v, want an error of the grace period: %v", err, row.lost)
				}
				stop, ended = startLone(t, simulated, func(context.Context, client.Client) { began <- time.Now() })
				if waited := (<-began).Sub(asked) - row.takes; waited > 5*time.Second != row.lost {
					t.Errorf("the next replica has the shard after %s, want that it was given away: %v", waited, !row.lost)
				}
				if err := <-wrote; errors.Is(err, flyball.ErrNotLeading) != row.lost {
					t.Errorf("the write of the reconcile: %v, want that it was refused: %v", err, row.lost)
				}
				stop()
				<-ended
			})
		})
	}
}

// A write that was cut off may still arrive when the last reconcile has ended. The manager ends then,
// without an error, and the next replica waits until the write cannot arrive any more.
func TestSharded_AWriteThatMayArriveDoesNotKeepTheManager_G18(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		simulated := simtest.New(t, nil, configMap("n-1-team", "a", nil))
		began := make(chan time.Time, 9)
		stop, ended := startLone(t, simulated, func(ctx context.Context, cl client.Client) {
			began <- time.Now()
			<-ctx.Done()
			simulated.Server.LoseResponseOf(schema.GroupKind{Kind: "ConfigMap"})
			if err := cl.Create(context.WithoutCancel(ctx), configMap("default", "late", nil)); err == nil {
				t.Error("the write was answered")
			}
		})
		<-began
		asked := time.Now()
		stop()
		err := <-ended
		if took := time.Since(asked); err != nil || took > 26*time.Second {
			t.Errorf("Start = %v after %s, want no error, within the grace period", err, took)
		}
		stop, ended = startLone(t, simulated, func(context.Context, client.Client) { began <- time.Now() })
		if waited := (<-began).Sub(asked); waited < 35*time.Second {
			t.Errorf("the next replica has the shard after %s, want that it waits for the write", waited)
		}
		stop()
		<-ended
	})
}

// startLone starts a replica that calls does for the one object of interest.
func startLone(
	t *testing.T, simulated *simtest.Server, does func(context.Context, client.Client),
) (stop context.CancelFunc, ended <-chan error) {
	t.Helper()
	mgr, err := Sharded(simulated.Config, options(t), Sharding{ID: "op", Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{NewQueue: NewQueue[reconcile.Request]}).
		Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			if req.Namespace == "n-1-team" {
				does(ctx, mgr.GetClient())
			}
			return ctrl.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return stop, done
}

// A panic of the function that ShardedOptions is given is one of the reconcile, which
// controller-runtime recovers and tries again.
func TestShardedOptions_APanicIsTheReconciles_G18(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		simulated := simtest.New(t, nil)
		mgr, err := Sharded(simulated.Config, options(t), Sharding{ID: "op", Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		var panics atomic.Int32
		ran := make(chan string, 1)
		does := reconcile.TypedFunc[string](func(_ context.Context, req string) (ctrl.Result, error) {
			ran <- req
			return ctrl.Result{}, nil
		})
		opts, err := ShardedOptions(mgr, controller.TypedOptions[string]{Reconciler: does}, func(string) (string, bool) {
			if panics.Add(1) < 5 {
				panic("a test says so")
			}
			return "", true
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := controller.NewTyped("typed", mgr, opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Watch(source.TypedFunc[string](func(_ context.Context, q workqueue.TypedRateLimitingInterface[string]) error {
			q.Add("a")
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		if req := <-ran; req != "a" || panics.Load() < 5 {
			t.Errorf("reconciled %s after %d calls, want a after some panics", req, panics.Load())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
