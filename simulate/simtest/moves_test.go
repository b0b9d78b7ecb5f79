// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
	"github.com/flyball-dev/flyball/source"
)

// pages has what managers log.
type pages struct {
	mu    sync.Mutex
	lines []string
}

func (p *pages) write(_, args string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, args)
}

// with returns the lines since the last call that have a text.
func (p *pages) with(text string) (found []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	p.lines = nil
	return found
}

var listsIn = regexp.MustCompile(`"lists"=(\d+)`)

// asked returns how many shards have moved since the last call, in how many batches, and how many
// lists the server was asked for by those that took them.
func (p *pages) asked() (batches, lists int) {
	for _, line := range p.with("The informers have what was written to shards before") {
		batches++
		if found := listsIn.FindStringSubmatch(line); found != nil {
			n, _ := strconv.Atoi(found[1])
			lists += n
		}
	}
	return batches, lists
}

// startDeleter runs one replica of an operator that deletes each ConfigMap whose data say so.
func startDeleter(t *testing.T, server *simtest.Server, p *pages, number int) *sharer {
	t.Helper()
	mgr, err := manager.New(manager.Options{
		Config: server.Config, MetricsAddress: "0", HealthAddress: "0", Logger: funcr.New(p.write, funcr.Options{Verbosity: 1}),
		Sharding:       &manager.Sharding{Shards: 16},
		LeaderElection: &manager.LeaderElection{ID: "op", Namespace: "default", Identity: fmt.Sprint("replica-", number)},
	})
	if err != nil {
		t.Fatal(err)
	}
	maps := informer.For[*corev1.ConfigMap](mgr.Informers())
	c := reconcile.For(maps, func(ctx context.Context, cm *corev1.ConfigMap) (reconcile.Result, error) {
		if cm.Data["gone"] == "" {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, reconcile.IgnoreNotFound(mgr.Client().Delete(ctx, cm))
	}, reconcile.Options{})
	if err := mgr.Add(c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &sharer{mgr, stop, make(chan struct{})}
	go func() {
		defer close(r.done)
		if err := mgr.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return r
}

// A replica that has deleted something does not know in which version. Who takes its shards asks
// the server once; when they move again, nobody does.
func TestReplicas_OneMoveAfterADeletionAsks_M31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []runtime.Object
		for i := range 64 {
			objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%d-a", i)}})
		}
		server, p := simtest.New(t, nil, objects...), &pages{}
		all := []*sharer{startDeleter(t, server, p, 0), startDeleter(t, server, p, 1)}
		defer func() {
			for _, r := range all {
				r.stop()
				<-r.done
			}
		}()
		move := func() (lists int) {
			t.Helper()
			time.Sleep(3 * time.Minute) // bookmarks show all scopes what was known last
			p.asked()
			third := startDeleter(t, server, p, 2)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			batches, lists := p.asked()
			if batches == 0 {
				t.Error("no shard has moved to the third replica")
			}
			time.Sleep(3 * time.Minute)
			third.stop()
			<-third.done
			time.Sleep(5 * time.Second)
			synctest.Wait()
			batches, back := p.asked()
			if batches == 0 {
				t.Error("no shard has moved back")
			}
			return lists + back
		}
		time.Sleep(40 * time.Second)
		if n := move(); n != 0 {
			t.Errorf("the server was asked for %d lists before anything was deleted, want none", n)
		}
		for i := range 8 { // some by each replica
			if err := server.Change(schema.GroupResource{Resource: "configmaps"}, types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("%d-a", i)}, func(obj metav1.Object) {
				obj.(*unstructured.Unstructured).Object["data"] = map[string]any{"gone": "yes"}
			}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		if n := move(); n == 0 {
			t.Error("the server was not asked for the deletions, whose versions nobody knows")
		}
		if n := move(); n != 0 {
			t.Errorf("the server was asked for %d lists by later moves, want none", n)
		}
	})
}

// A controller that is added during Run finds its kind divided without it. The log says that
// Listers show a part.
func TestReplicas_AControllerThatComesLateIsRefused_M31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := simtest.New(t, nil), &pages{}
		r := startDeleter(t, server, p, 0)
		defer func() {
			r.stop()
			<-r.done
		}()
		time.Sleep(40 * time.Second)
		if lines := p.with("Listers of it show this replica's part"); len(lines) != 1 || !strings.Contains(lines[0], `"kind"="ConfigMap"`) {
			t.Errorf("logged %q, want one line about ConfigMaps", lines)
		}
		late := func(name string, opts reconcile.Options, s source.Source[reconcile.Key]) error {
			c := reconcile.New(name, func(context.Context, reconcile.Key) (reconcile.Result, error) { return reconcile.Result{}, nil }, opts)
			c.Watch(s)
			return r.Add(c)
		}
		by := func(reconcile.Key) (string, bool) { return "", true }
		maps := informer.For[*corev1.ConfigMap](r.Informers())
		err := late("late", reconcile.Options{ShardBy: by}, source.Kind(maps, source.Self))
		if err == nil || !strings.Contains(err.Error(), "add it before Run") {
			t.Errorf("a controller that would miss objects of other shards: %v, want an error that says what to do", err)
		}
		if err := late("late", reconcile.Options{ShardBy: by}, source.Kind(informer.For[*corev1.Secret](r.Informers()), source.Self)); err != nil {
			t.Errorf("a controller of a kind that no other uses: %v", err)
		}
	})
}
