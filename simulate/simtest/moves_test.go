// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
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
	return startLogged(t, server.Config, p, number, func(ctx context.Context, mgr *manager.Manager, cm *corev1.ConfigMap) error {
		if cm.Data["gone"] == "" {
			return nil
		}
		return reconcile.IgnoreNotFound(mgr.Client().Delete(ctx, cm))
	})
}

// startLogged runs one replica of an operator of ConfigMaps in 16 shards, whose log p has.
func startLogged(t *testing.T, cfg *rest.Config, p *pages, number int, f func(context.Context, *manager.Manager, *corev1.ConfigMap) error) *sharer {
	t.Helper()
	return startReplica(t, manager.Options{
		Config: cfg, Logger: funcr.New(p.write, funcr.Options{Verbosity: 1}), Sharding: &manager.Sharding{Shards: 16},
	}, number, f)
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

// severed is a connection to the server that can be cut.
type severed struct {
	http.RoundTripper
	cut atomic.Bool
}

func (s *severed) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.cut.Load() {
		return nil, errors.New("the connection is cut")
	}
	return s.RoundTripper.RoundTrip(r)
}

func (s *severed) CloseIdleConnections() {}

// listsOfMaps returns how many lists of ConfigMaps the server has answered, as pages and as streams.
func listsOfMaps(server *simtest.Server) (n int) {
	for _, r := range server.Served() {
		if strings.HasSuffix(r.Path, "/configmaps") && (r.Verb == "list" || strings.Contains(r.Query, "sendInitialEvents=true")) {
			n++
		}
	}
	return n
}

// holders returns the identities in the Leases of shards.
func holders(server *simtest.Server) map[string]string {
	all := map[string]string{}
	for _, lease := range server.Objects(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}) {
		if strings.Contains(lease.GetName(), "-shard-") {
			all[lease.GetName()], _, _ = unstructured.NestedString(lease.(*unstructured.Unstructured).Object, "spec", "holderIdentity")
		}
	}
	return all
}

// Where the server selects by shards, a replica lists what it gains, and asks at most once for all
// of the shards that it has already.
func TestReplicas_AMoveCostsTwoListsAtMost_M33(t *testing.T) {
	for what, pace := range map[string]time.Duration{"quiet": 0, "busy": 40 * time.Millisecond} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { countListsOfMoves(t, pace) })
		})
	}
}

func countListsOfMoves(t *testing.T, pace time.Duration) {
	var objects []runtime.Object
	for i := range 160 {
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%d-a", i)}})
	}
	server, p := simtest.New(t, nil, objects...), &pages{}
	label := func(ctx context.Context, mgr *manager.Manager, cm *corev1.ConfigMap) error {
		if cm.Data["generation"] == cm.Labels["seen"] {
			return nil
		}
		next := kube.Copy(cm)
		next.Labels = map[string]string{"seen": cm.Data["generation"]}
		return mgr.Client().Update(ctx, next)
	}
	connections := []*severed{}
	start := func() *sharer {
		one := &severed{RoundTripper: server.Config.Transport}
		connections = append(connections, one)
		cfg := rest.CopyConfig(server.Config)
		cfg.Transport = one
		return startLogged(t, cfg, p, len(connections), label)
	}
	all := []*sharer{start(), start()}
	stop := func(r *sharer) {
		r.stop()
		<-r.done
	}
	edits := make(chan struct{})
	var editor sync.WaitGroup
	edit := func(i int) {
		if err := server.Change(schema.GroupResource{Resource: "configmaps"}, types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("%d-a", i%160)}, func(obj metav1.Object) {
			obj.(*unstructured.Unstructured).Object["data"] = map[string]any{"generation": fmt.Sprint(i)}
		}); err != nil {
			t.Error(err)
		}
	}
	for i := range 160 {
		edit(i)
	}
	time.Sleep(40 * time.Second)
	editor.Go(func() {
		for i := 160; pace > 0; i++ {
			select {
			case <-edits:
				return
			case <-time.After(pace):
				edit(i)
			}
		}
	})
	defer func() {
		close(edits)
		editor.Wait()
		for _, r := range all {
			stop(r)
		}
	}()
	count := func(what string, within time.Duration, do func()) {
		t.Helper()
		for i := range 20 {
			edit(i) // the newest version is not of all shards
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		before, held := listsOfMaps(server), holders(server)
		do()
		time.Sleep(within)
		synctest.Wait()
		moved, lists := 0, listsOfMaps(server)-before
		for shard, holder := range holders(server) {
			if holder != held[shard] {
				moved++
			}
		}
		t.Logf("%s: %d moves, %d lists", what, moved, lists)
		if moved == 0 || lists > 2*moved {
			t.Errorf("%s: %d shards moved, for %d lists; want at most two for each", what, moved, lists)
		}
	}
	count("a third replica", 10*time.Second, func() { all = append(all, start()) })
	count("a fourth", 10*time.Second, func() { all = append(all, start()) })
	count("one leaves", 10*time.Second, func() {
		stop(all[0])
		all = all[1:]
	})
	count("another is cut off", 40*time.Second, func() { connections[1].cut.Store(true) })
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
