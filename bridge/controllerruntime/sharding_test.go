// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

	flyball "github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// crowd notes which replica reconciles a request, and fails when two do at once.
type crowd struct {
	t      *testing.T
	server *simtest.Server
	by     ShardBy
	work   time.Duration // of a reconcile
	all    []*sharer
	does   func(client.Client) reconcile.Func
	owned  []client.Object // not nil: each ConfigMap has a Secret
	// theirQueue: controllers have controller-runtime's queue. That of 0.24 may leave a goroutine behind
	// if a request comes while it is shut down.
	theirQueue bool
	mu         struct {
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

// namespace returns the name of a namespace. The hash of shards hardly depends on the last
// characters.
func namespace(i int) string { return fmt.Sprintf("n-%d-team", i) }

func newCrowd(t *testing.T, by ShardBy, objects int) *crowd {
	var all []runtime.Object
	for i := range objects {
		all = append(all, configMap(namespace(i), "a", map[string]string{"content": "one"}))
	}
	c := &crowd{t: t, server: simtest.New(t, nil, all...), by: by, work: 20 * time.Millisecond, does: labelling}
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
		Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: new(true), CacheSyncTimeout: time.Hour},
		LeaderElectionNamespace: "default", Logger: log,
	}
}

// labelling notes in a label of each ConfigMap what it has seen.
func labelling(cl client.Client) reconcile.Func {
	return func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		cm := &corev1.ConfigMap{}
		err := cl.Get(ctx, req.NamespacedName, cm)
		if err != nil || cm.Labels["seen"] == cm.Data["content"] {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		cm.Labels["seen"] = cm.Data["content"]
		return ctrl.Result{}, cl.Update(ctx, cm)
	}
}

// start starts a replica of an operator.
func (c *crowd) start() *sharer {
	c.t.Helper()
	o := &sharer{number: len(c.all), done: make(chan struct{})}
	cfg := rest.CopyConfig(c.server.Config)
	cfg.Transport = network{cfg.Transport, o}
	var err error
	o.Manager, err = Sharded(cfg, options(c.t), Sharding{ID: "op", Shards: 32, By: c.by, Identity: fmt.Sprint("replica-", o.number), Owned: c.owned})
	if err != nil {
		c.t.Fatal(err)
	}
	b := ctrl.NewControllerManagedBy(o).For(&corev1.ConfigMap{})
	if !c.theirQueue {
		b = b.WithOptions(controller.Options{NewQueue: NewQueue[reconcile.Request]})
	}
	if c.owned != nil {
		b, c.does = b.Owns(&corev1.Secret{}), right
	}
	does := c.does(o.GetClient())
	if err := b.Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		defer c.begin(req.String(), o.number)()
		time.Sleep(c.work)
		return does(ctx, req)
	})); err != nil {
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
		c.changeOne(i, content)
	}
}

func (c *crowd) changeOne(i int, content string) {
	c.t.Helper()
	err := c.server.Change(schema.GroupResource{Resource: "configmaps"}, types.NamespacedName{Namespace: namespace(i), Name: "a"}, func(obj metav1.Object) {
		obj.(*unstructured.Unstructured).Object["data"] = map[string]any{"content": content}
	})
	if err != nil {
		c.t.Fatal(err)
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
	const objects = 800
	took := map[int]time.Duration{}
	for _, replicas := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, ByNamespace, objects)
			c.work, c.theirQueue = 0, true
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
			time.Sleep(time.Minute)
		})
	}
	ratio := took[1].Seconds() / took[4].Seconds()
	t.Logf("%d reconciles of 20 ms: one replica %s, four %s: %.2f times as fast", objects, took[1], took[4], ratio)
	if ratio < 3.3 {
		t.Errorf("four replicas are %.2f times as fast as one, want 3.3", ratio)
	}
}

// A Lease that somebody edits by hand ends what runs of its shard, and its writes.
func TestSharded_ALostShardEndsItsReconciles_G18(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		simulated := simtest.New(t, nil, configMap("n-1-team", "a", nil))
		mgr, err := Sharded(simulated.Config, options(t), Sharding{ID: "op", Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		began, ended := make(chan struct{}, 9), make(chan error, 9)
		ours := controller.Options{NewQueue: NewQueue[reconcile.Request]}
		err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).WithOptions(ours).Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			began <- struct{}{}
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			err := mgr.GetClient().Create(context.WithoutCancel(ctx), configMap("default", "late", nil))
			ended <- errors.Join(context.Cause(ctx), err)
			return ctrl.Result{}, err
		}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := mgr.Start(ctx); err != nil {
				t.Error(err)
			}
		})
		<-began
		if err := simulated.Change(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, types.NamespacedName{Namespace: "default", Name: "op-shard-0"}, func(obj metav1.Object) {
			_ = unstructured.SetNestedField(obj.(*unstructured.Unstructured).Object, "thief", "spec", "holderIdentity")
		}); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, flyball.ErrNotLeading) || !strings.Contains(err.Error(), "another holder") {
			t.Errorf("a reconcile whose shard was lost, and its write: %v, want why", err)
		}
		if err := mgr.GetAPIReader().Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "late"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Errorf("the late write: %v, want that it was not sent", err)
		}
		stop()
		running.Wait()
	})
}

// What a replica reads is there, or the read says that another replica may have it.
func TestSharded_NoReadMissesWhatExists_G18(t *testing.T) {
	for _, by := range []ShardBy{ByNamespace, ByUID} {
		t.Run(string(by), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const objects = 40
				c := newCrowd(t, by, objects)
				defer c.end()
				c.start()
				c.start()
				time.Sleep(40 * time.Second)
				for _, o := range c.all {
					var found, elsewhere int
					for i := range objects {
						switch err := o.GetClient().Get(t.Context(), types.NamespacedName{Namespace: namespace(i), Name: "a"}, &corev1.ConfigMap{}); {
						case err == nil:
							found++
						case strings.Contains(err.Error(), "Whole of bridge.Sharding") && !apierrors.IsNotFound(err):
							elsewhere++
						default:
							t.Error(err)
						}
					}
					if found == 0 || elsewhere == 0 || found+elsewhere != objects {
						t.Errorf("replica %d found %d objects, and %d are another one's, want %d in all", o.number, found, elsewhere, objects)
					}
				}
			})
		})
	}
}

// Children that ByUID divides are where their owner is, and come back when they are deleted.
func TestSharded_OwnedObjectsAreWithTheirOwners_G18(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 60
		c := newCrowd(t, ByUID, objects)
		c.owned = []client.Object{&corev1.Secret{}}
		defer c.end()
		for range 3 {
			c.start()
		}
		time.Sleep(40 * time.Second)
		secrets := func() (sum int) {
			t.Helper()
			for _, o := range c.all {
				found := &corev1.SecretList{}
				if err := o.GetClient().List(t.Context(), found); err != nil {
					t.Fatal(err)
				}
				if n := c.cached(o); len(found.Items) != n || n == 0 {
					t.Errorf("the cache of replica %d has %d Secrets of %d ConfigMaps", o.number, len(found.Items), n)
				}
				sum += len(found.Items)
			}
			return sum
		}
		person, err := client.New(c.server.Config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := secrets(); n != objects {
			t.Errorf("there are %d Secrets, want %d", n, objects)
		}
		for i := range objects {
			if err := person.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace(i), Name: "a"}}); err != nil {
				t.Fatal(err)
			}
		}
		c.all[0].stop()
		<-c.all[0].done
		c.all = c.all[1:]
		time.Sleep(10 * time.Second)
		if n := secrets(); n != objects {
			t.Errorf("after all were deleted and a replica has left there are %d Secrets, want %d", n, objects)
		}
	})
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

// Replicas join, leave and lose their network, people edit and delete Leases, and objects change
// all the time: no request is reconciled twice at once, and when all is quiet each has been.
func TestSharded_Seeds_G18(t *testing.T) {
	seeds := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("SEEDS"), 0, 64); err == nil {
		seeds = n
	}
	for seed := range seeds {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { runSeed(t, seed) }) }) {
			return
		}
	}
}

func runSeed(t *testing.T, seed uint64) {
	const objects = 60
	draw := rand.New(rand.NewPCG(seed, 11))
	c := newCrowd(t, []ShardBy{ByNamespace, ByUID}[draw.IntN(2)], objects)
	if draw.IntN(2) == 0 && c.by == ByUID {
		c.owned = []client.Object{&corev1.Secret{}}
	}
	defer c.end()
	c.start()
	c.start()
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	person, err := client.New(c.server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for step := range 40 {
		one := c.all[draw.IntN(len(c.all))]
		shard := fmt.Sprint("op-shard-", draw.IntN(32))
		switch draw.IntN(8) {
		case 0:
			if len(c.all) < 5 {
				c.start()
			}
		case 1:
			if len(c.all) > 2 {
				one.stop()
				<-one.done
				c.all = slices.DeleteFunc(c.all, func(o *sharer) bool { return o == one })
			}
		case 2:
			one.cut.Store(!one.cut.Load())
		case 3:
			_ = person.Delete(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: shard}})
		case 4:
			_ = c.server.Change(leases, types.NamespacedName{Namespace: "default", Name: shard}, func(obj metav1.Object) {
				_ = unstructured.SetNestedField(obj.(*unstructured.Unstructured).Object, "thief", "spec", "holderIdentity")
			})
		default:
			for range 20 {
				c.changeOne(draw.IntN(objects), fmt.Sprint("step-", step))
				time.Sleep(time.Duration(draw.IntN(100)) * time.Millisecond)
			}
		}
		time.Sleep(time.Duration(draw.IntN(20_000)) * time.Millisecond)
	}
	for _, o := range c.all {
		o.cut.Store(false)
	}
	c.change(objects, "last")
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	for i := range objects {
		cm := &corev1.ConfigMap{}
		key := types.NamespacedName{Namespace: namespace(i), Name: "a"}
		if err := person.Get(t.Context(), key, cm); err != nil {
			t.Fatal(err)
		}
		if c.owned != nil {
			secret := &corev1.Secret{}
			if err := person.Get(t.Context(), key, secret); err != nil || string(secret.Data["content"]) != "last" {
				t.Errorf("%s: its Secret has %q, %v", key, secret.Data["content"], err)
			}
		} else if cm.Labels["seen"] != "last" {
			t.Errorf("%s was reconciled last with %q", key, cm.Labels["seen"])
		}
	}
	sum := 0
	for _, o := range c.all {
		sum += c.cached(o)
	}
	if sum != objects {
		t.Errorf("the caches of all replicas have %d objects, want %d", sum, objects)
	}
}
