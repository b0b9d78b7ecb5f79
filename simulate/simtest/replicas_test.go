// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// double notes which replica reconciles a key, and fails when two do at once.
type double struct {
	t    *testing.T
	mu   sync.Mutex
	busy map[string]int
	ran  map[string][]int // replicas by key
}

func (d *double) begin(key string, replica int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if other, is := d.busy[key]; is {
		d.t.Errorf("%s is reconciled by replicas %d and %d at once", key, other, replica)
	}
	d.busy[key] = replica
	d.ran[key] = append(d.ran[key], replica)
}

func (d *double) end(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.busy, key)
}

// by returns how many keys each of n replicas has reconciled last.
func (d *double) by(n int) []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]int, n)
	for _, ran := range d.ran {
		out[ran[len(ran)-1]]++
	}
	return out
}

// label labels a ConfigMap as replica number, and notes that.
func (d *double) label(number int) func(context.Context, *manager.Manager, *corev1.ConfigMap) error {
	return func(ctx context.Context, mgr *manager.Manager, cm *corev1.ConfigMap) error {
		key := cm.Namespace + "/" + cm.Name
		d.begin(key, number)
		defer d.end(key)
		time.Sleep(20 * time.Millisecond)
		next := kube.Copy(cm)
		if next.Labels == nil {
			next.Labels = map[string]string{}
		}
		next.Labels["seen"] = next.Data["generation"]
		return mgr.Client().Update(ctx, next)
	}
}

func TestReplicas_ShareTheObjects_M31(t *testing.T) {
	for _, by := range []manager.ShardBy{manager.UID, manager.Namespace} {
		t.Run(string(by), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var objects []runtime.Object
				for i := range 120 {
					objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("n-%d-team", i), Name: "a"}})
				}
				server := simtest.New(t, nil, objects...)
				d := &double{t: t, busy: map[string]int{}, ran: map[string][]int{}}
				var all []*sharer
				for i := range 3 {
					all = append(all, startOperator(t, server, i, 16, by, d.label(i)))
				}
				defer func() {
					for _, r := range all {
						r.stop()
						<-r.done
					}
				}()
				time.Sleep(30 * time.Second)
				synctest.Wait()
				got := d.by(3)
				t.Log("keys by replica", got)
				if got[0]+got[1]+got[2] != 120 {
					t.Errorf("%v keys were reconciled, want 120 in all", got)
				}
				for i, n := range got {
					if n == 0 {
						t.Errorf("replica %d has reconciled nothing", i)
					}
				}
				for i, r := range all {
					cached := 0
					for range informer.For[*corev1.ConfigMap](r.Informers()).Lister().All() {
						cached++
					}
					if cached != got[i] {
						t.Errorf("replica %d has %d objects and reconciles %d", i, cached, got[i])
					}
				}
				all[1].stop()
				<-all[1].done
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if got := d.by(3); got[1] != 0 || got[0]+got[2] != 120 {
					t.Errorf("after replica 1 has left, the keys were last reconciled by %v", got)
				}
			})
		})
	}
}
