// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/simulate/simtest"
)

// crowd notes which replica reconciles a request, and fails when two do at once.
type crowd struct {
	t      *testing.T
	server *simtest.Server
	by     ShardBy
	work   time.Duration // of a reconcile
	all    []*sharer
	mu     struct {
		sync.Mutex
		busy map[string]int
		last map[string]int // replica
		runs int
	}
}

// sharer is a replica.
type sharer struct {
	ctrl.Manager
	number int
	cut    atomic.Bool // its network
	stop   context.CancelFunc
	done   chan struct{}
}

var errCut = errors.New("the network is cut")

// network is that of a replica.
type network struct {
	next http.RoundTripper
	of   *sharer
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (n network) WrappedRoundTripper() http.RoundTripper { return n.next }

// RoundTrip implements http.RoundTripper.
func (n network) RoundTrip(req *http.Request) (*http.Response, error) {
	if n.of.cut.Load() {
		return nil, errCut
	}
	resp, err := n.next.RoundTrip(req)
	if err == nil && n.of.cut.Load() {
		_ = resp.Body.Close()
		return nil, errCut
	}
	return resp, err
}

// namespace returns the name of a namespace. The hash of shards hardly depends on the last characters.
func namespace(i int) string { return fmt.Sprintf("n-%d-team", i) }

func newCrowd(t *testing.T, by ShardBy, objects int) *crowd {
	var all []runtime.Object
	for i := range objects {
		all = append(all, configMap(namespace(i), "a", map[string]string{"content": "one"}))
	}
	c := &crowd{t: t, server: simtest.New(t, nil, all...), by: by, work: 20 * time.Millisecond}
	c.mu.busy, c.mu.last = map[string]int{}, map[string]int{}
	return c
}

func (c *crowd) begin(key string, replica int) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, is := c.mu.busy[key]; is {
		c.t.Errorf("%s is reconciled by replicas %d and %d at once", key, other, replica)
	}
	c.mu.busy[key], c.mu.last[key] = replica, replica
	c.mu.runs++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.mu.busy, key)
	}
}

// forget forgets what was reconciled.
func (c *crowd) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.last = map[string]int{}
}

// last returns how many requests each replica has reconciled last.
func (c *crowd) last() (by []int, sum int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	by = make([]int, len(c.all))
	for _, replica := range c.mu.last {
		by[replica]++
	}
	return by, len(c.mu.last)
}

func options(t *testing.T) ctrl.Options {
	log := logr.Discard()
	if testing.Verbose() {
		log = testr.New(t)
	}
	return ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		LeaderElectionNamespace: "default", Logger: log,
	}
}

// start starts a replica of an operator that notes in a label of each ConfigMap what it has seen.
func (c *crowd) start() *sharer {
	c.t.Helper()
	o := &sharer{number: len(c.all), done: make(chan struct{})}
	cfg := rest.CopyConfig(c.server.Config)
	cfg.Transport = network{cfg.Transport, o}
	var err error
	o.Manager, err = Sharded(cfg, options(c.t), Sharding{ID: "op", Shards: 32, By: c.by, Identity: fmt.Sprint("replica-", o.number)})
	if err != nil {
		c.t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(o).For(&corev1.ConfigMap{}).Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		defer c.begin(req.String(), o.number)()
		cm := &corev1.ConfigMap{}
		if err := o.GetClient().Get(ctx, req.NamespacedName, cm); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		time.Sleep(c.work)
		if cm.Labels["seen"] == cm.Data["content"] {
			return ctrl.Result{}, nil
		}
		cm.Labels["seen"] = cm.Data["content"]
		return ctrl.Result{}, o.GetClient().Update(ctx, cm)
	}))
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	c.all = append(c.all, o)
	go func() {
		defer close(o.done)
		if err := o.Start(ctx); err != nil {
			c.t.Error(err)
		}
	}()
	return o
}

func (c *crowd) end() {
	for _, o := range c.all {
		o.stop()
		<-o.done
	}
}

// cached returns how many objects the cache of a replica holds.
func (c *crowd) cached(o *sharer) int {
	found := &corev1.ConfigMapList{}
	if err := o.GetCache().List(c.t.Context(), found); err != nil {
		c.t.Error(err)
	}
	return len(found.Items)
}

// change makes all objects have other content.
func (c *crowd) change(objects int, content string) {
	c.t.Helper()
	for i := range objects {
		err := c.server.Change(schema.GroupResource{Resource: "configmaps"}, types.NamespacedName{Namespace: namespace(i), Name: "a"}, func(obj metav1.Object) {
			obj.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()["data"] = map[string]any{"content": content}
		})
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestSharded_ReplicasShareTheObjects_G18(t *testing.T) {
	for _, by := range []ShardBy{ByNamespace, ByUID} {
		t.Run(string(by), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { shareTheObjects(t, by) }) })
	}
}

func shareTheObjects(t *testing.T, by ShardBy) {
	const objects = 200
	c := newCrowd(t, by, objects)
	defer c.end()
	check := func(when string, working ...int) {
		t.Helper()
		synctest.Wait()
		got, sum := c.last()
		t.Log(when, "requests by replica", got)
		if sum != objects {
			t.Errorf("%s: %d requests were reconciled, want %d", when, sum, objects)
		}
		for i, n := range got {
			if !slices.Contains(working, i) {
				if n != 0 {
					t.Errorf("%s: replica %d has reconciled %d requests, want none", when, i, n)
				}
				continue
			}
			if fair := objects / len(working); n < fair/2 || n > 2*fair {
				t.Errorf("%s: replica %d has reconciled %d requests, want about %d", when, i, n, fair)
			}
			if cached := c.cached(c.all[i]); cached != n {
				t.Errorf("%s: the cache of replica %d has %d objects, and it reconciles %d", when, i, cached, n)
			}
		}
	}
	for range 3 {
		c.start()
	}
	time.Sleep(30 * time.Second)
	check("three:", 0, 1, 2)

	c.start()
	time.Sleep(5 * time.Second)
	c.forget()
	c.change(objects, "two")
	time.Sleep(5 * time.Second)
	check("a fourth has joined:", 0, 1, 2, 3)

	c.change(objects, "three") // while one leaves
	c.all[1].stop()
	<-c.all[1].done
	time.Sleep(3 * time.Second)
	check("the second has left:", 0, 2, 3)

	c.all[2].cut.Store(true)
	c.change(objects, "four")
	time.Sleep(40 * time.Second)
	check("the third is cut off:", 0, 3)

	c.all[2].cut.Store(false)
	time.Sleep(40 * time.Second)
	c.forget()
	c.change(objects, "five")
	time.Sleep(5 * time.Second)
	check("the third is back:", 0, 2, 3)
}

func TestSharded_FourDoTheWorkOfFour(t *testing.T) {
	const objects = 2000
	took := map[int]time.Duration{}
	for _, replicas := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, ByNamespace, objects)
			c.work = 0
			defer c.end()
			for range replicas {
				c.start()
			}
			time.Sleep(40 * time.Second)
			synctest.Wait()
			c.work = 20 * time.Millisecond
			c.forget()
			began := time.Now()
			c.change(objects, "two")
			for sum := 0; sum < objects; _, sum = c.last() {
				time.Sleep(10 * time.Millisecond)
			}
			took[replicas] = time.Since(began)
		})
	}
	ratio := took[1].Seconds() / took[4].Seconds()
	t.Logf("%d reconciles of 20 ms: one replica %s, four %s: %.2f times as fast", objects, took[1], took[4], ratio)
	if ratio < 3.3 {
		t.Errorf("four replicas are %.2f times as fast as one, want 3.3", ratio)
	}
}

func TestSharded_RunnablesOfALeaderRunOnce_G18(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, ByNamespace, 1)
		defer c.end()
		var running, started atomic.Int32
		for range 3 {
			o := c.start()
			if err := o.Add(manager.RunnableFunc(func(ctx context.Context) error {
				started.Add(1)
				if running.Add(1) > 1 {
					t.Error("two replicas run what needs leader election")
				}
				defer running.Add(-1)
				<-ctx.Done()
				return nil
			})); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(30 * time.Second)
		for range 3 {
			if running.Load() != 1 {
				t.Fatalf("%d replicas run what needs leader election, want 1", running.Load())
			}
			i := slices.IndexFunc(c.all, func(o *sharer) bool {
				select {
				case <-o.Elected():
					return true
				default:
					return false
				}
			})
			if i < 0 {
				t.Fatal("no replica is elected")
			}
			c.all[i].stop()
			<-c.all[i].done
			c.all = slices.Delete(c.all, i, i+1)
			time.Sleep(5 * time.Second)
		}
		if started.Load() != 3 {
			t.Errorf("it was started %d times, want once on each replica", started.Load())
		}
	})
}

func TestSharded_Misuse(t *testing.T) {
	simulated := simtest.New(t, nil)
	for want, change := range map[string]func(*ctrl.Options, *Sharding){
		"Shards is 0":                    func(_ *ctrl.Options, s *Sharding) { s.Shards = 0 },
		"ID is \"\"":                     func(_ *ctrl.Options, s *Sharding) { s.ID = "" },
		"By is \"name\"":                 func(_ *ctrl.Options, s *Sharding) { s.By = "name" },
		"Weight is -1":                   func(_ *ctrl.Options, s *Sharding) { s.Weight = -1 },
		"Owned is set":                   func(_ *ctrl.Options, s *Sharding) { s.Owned = []client.Object{&corev1.Secret{}} },
		"LeaseDuration is 1.5s":          func(o *ctrl.Options, _ *Sharding) { o.LeaseDuration = new(1500 * time.Millisecond) },
		"set LeaderElectionNamespace":    func(o *ctrl.Options, _ *Sharding) { o.LeaderElectionNamespace = "" },
		"that is not of bridge.NewCache": func(o *ctrl.Options, _ *Sharding) { o.NewCache = cache.New },
		"Object 'Kind' is missing":       func(_ *ctrl.Options, s *Sharding) { s.Whole = []client.Object{&metav1.PartialObjectMetadata{}} },
	} {
		opts, s := options(t), Sharding{ID: "op", Shards: 8}
		change(&opts, &s)
		if _, err := Sharded(simulated.Config, opts, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	nothing := reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, nil })
	mgr, err := Sharded(simulated.Config, options(t), Sharding{ID: "op", Shards: 8, By: ByUID, Singletons: []string{"sngleton"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := controller.New("raw", mgr, controller.Options{Reconciler: nothing}); err == nil || !strings.Contains(err.Error(), "set Kinds of bridge.Sharding for \"raw\"") {
		t.Errorf("a controller for an unknown kind: %v, want that Kinds are needed", err)
	}
	typed := reconcile.TypedFunc[string](func(context.Context, string) (ctrl.Result, error) { return ctrl.Result{}, nil })
	if _, err := controller.NewTyped("typed", mgr, controller.TypedOptions[string]{Reconciler: typed}); err == nil || !strings.Contains(err.Error(), "bridge.ShardedOptions") {
		t.Errorf("a controller of other requests: %v, want that ShardedOptions is needed", err)
	}
	completed, err := ShardedOptions(mgr, controller.TypedOptions[string]{Reconciler: typed}, nil)
	if err == nil {
		_, err = controller.NewTyped("completed", mgr, completed)
	}
	if err != nil {
		t.Errorf("a controller of other requests with completed options: %v", err)
	}
	if err := mgr.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "\"sngleton\"") {
		t.Errorf("a manager with an unknown singleton: %v, want its name", err)
	}
}
