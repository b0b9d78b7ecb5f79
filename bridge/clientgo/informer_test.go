// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/informer"
)

type cmap = *corev1.ConfigMap

var configMaps = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// server is client-go's fake of a list and watch with resource versions. It
// does not support streaming lists.
type server struct{ *fcache.FakeControllerSource }

func newServer(t *testing.T, objects ...cmap) server {
	s := server{fcache.NewFakeControllerSource()}
	t.Cleanup(s.Shutdown)
	for _, obj := range objects {
		s.Add(obj)
	}
	return s
}

func (server) IsWatchListSemanticsUnSupported() bool { return true }

func configMap(name, v string) cmap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, UID: types.UID(name)},
		Data:       map[string]string{"v": v},
	}
}

// adapt returns an informer on s as client-go's; it is not running.
func adapt(s cache.ListerWatcher, opts informer.Options) cache.SharedIndexInformer {
	return adaptWith(s, opts, clientgo.Options{})
}

func adaptWith(s cache.ListerWatcher, opts informer.Options, adapted clientgo.Options) cache.SharedIndexInformer {
	return clientgo.NewSharedIndexInformer(informer.New(clientgo.NewListerWatcher[cmap](s), configMaps, opts), adapted)
}

// run runs i until the test ends or stop is called.
func run(t *testing.T, i cache.SharedIndexInformer) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.RunWithContext(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// log is a cache.ResourceEventHandler that records its calls.
type log struct {
	mu struct {
		sync.Mutex
		lines []string
	}
}

func (l *log) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.lines = append(l.mu.lines, line)
}

func (l *log) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.mu.lines
	l.mu.lines = nil
	return lines
}

func (l *log) OnAdd(obj any, initial bool) {
	o := obj.(cmap)
	l.add(strings.TrimSpace(fmt.Sprintf("add %s %s %s", o.Name, o.Data["v"], map[bool]string{true: "initial"}[initial])))
}

func (l *log) OnUpdate(before, after any) {
	o, n := before.(cmap), after.(cmap)
	l.add(fmt.Sprintf("update %s %s>%s", n.Name, o.Data["v"], n.Data["v"]))
}

func (l *log) OnDelete(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		l.add("delete unseen " + unknown.Key + " " + unknown.Obj.(cmap).Data["v"])
		return
	}
	l.add("delete " + obj.(cmap).Name + " " + obj.(cmap).Data["v"])
}

func join(t *testing.T, i cache.SharedInformer, h cache.ResourceEventHandler, opts cache.HandlerOptions) cache.ResourceEventHandlerRegistration {
	t.Helper()
	r, err := i.AddEventHandlerWithOptions(h, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestInformer_HandlersAreToldEveryEventInTheOrderOfTheStream_G1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"))
		i := adapt(s, informer.Options{})
		l := &log{}
		hold := make(chan struct{})
		first := sync.OnceFunc(func() { <-hold })
		join(t, i, cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj any, initial bool) { first(); l.OnAdd(obj, initial) },
			UpdateFunc: l.OnUpdate,
			DeleteFunc: l.OnDelete,
		}, cache.HandlerOptions{})
		run(t, i)
		synctest.Wait()
		// All of this waits while the handler is busy, without merging.
		s.Modify(configMap("a", "2"))
		s.Add(configMap("b", "1"))
		s.Modify(configMap("a", "3"))
		s.Delete(configMap("b", "1"))
		s.Add(configMap("b", "9"))
		s.Delete(configMap("a", "3"))
		synctest.Wait()
		close(hold)
		synctest.Wait()
		expect(t, "what a handler that counts must see", l.take(),
			"add a 1 initial", "update a 1>2", "add b 1", "update a 2>3", "delete b 1", "add b 9", "delete a 3")
	})
}

func TestInformer_AddsAndDeletesAreNeverDropped_G1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		i := adapt(s, informer.Options{})
		var mu sync.Mutex
		adds, deletes := 0, 0
		hold := make(chan struct{})
		join(t, i, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { <-hold; mu.Lock(); defer mu.Unlock(); adds++ },
			DeleteFunc: func(any) { mu.Lock(); defer mu.Unlock(); deletes++ },
		}, cache.HandlerOptions{})
		run(t, i)
		synctest.Wait()
		const many = 5000 // past the backlog above which updates merge
		for range many {
			s.Add(configMap("a", "1"))
			synctest.Wait()
			s.Delete(configMap("a", "1"))
			synctest.Wait()
		}
		close(hold)
		synctest.Wait()
		if adds != many || deletes != many {
			t.Errorf("got %d adds and %d deletes, want %d of each: expectations that count them never come true", adds, deletes, many)
		}
	})
}

func TestInformer_UnseenDeletionIsFinalStateUnknown_G2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"), configMap("b", "1"))
		i := adapt(s, informer.Options{})
		l := &log{}
		run(t, i)
		synctest.Wait()
		join(t, i, l, cache.HandlerOptions{})
		synctest.Wait()
		l.take()
		s.DeleteDropWatch(configMap("a", "1"))
		s.ResetWatch() // the watch ends and the events in between are lost
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, "after a relist", l.take(), "delete unseen prod/a 1", "update b 1>1")
	})
}

func TestInformer_LateHandlerIsGivenWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"))
		i := adapt(s, informer.Options{})
		run(t, i)
		synctest.Wait()
		l := &log{}
		r := join(t, i, l, cache.HandlerOptions{})
		if !cache.WaitFor(t.Context(), "", r.HasSyncedChecker()) || !r.HasSynced() {
			t.Error("the registration has not synced")
		}
		s.Modify(configMap("a", "2"))
		synctest.Wait()
		expect(t, "late handler", l.take(), "add a 1 initial", "update a 1>2")
	})
}

func TestInformer_HandlerHasSyncedAfterItsInitialObjects_G3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"))
		i := adapt(s, informer.Options{})
		hold := make(chan struct{})
		r := join(t, i, cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-hold }}, cache.HandlerOptions{})
		if i.HasSynced() || r.HasSynced() || cache.IsDone(i.HasSyncedChecker()) || i.LastSyncResourceVersion() != "" {
			t.Error("synced before the start")
		}
		run(t, i)
		synctest.Wait()
		if !i.HasSynced() || !cache.IsDone(i.HasSyncedChecker()) {
			t.Error("the informer has not synced though its list is stored")
		}
		if r.HasSynced() || cache.IsDone(r.HasSyncedChecker()) {
			t.Error("the handler counts as synced while it has not returned from an initial object")
		}
		close(hold)
		synctest.Wait()
		if !r.HasSynced() || !cache.IsDone(r.HasSyncedChecker()) {
			t.Error("the handler has not synced after its initial objects")
		}
		if name := r.HasSyncedChecker().Name(); !strings.Contains(name, "ConfigMap") {
			t.Errorf("the checker's name is %q; it is to name the type", name)
		}
	})
}

func TestInformer_ResyncIsPerHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"))
		i := adapt(s, informer.Options{Resync: time.Hour})
		often, never, usual := &log{}, &log{}, &log{}
		join(t, i, usual, cache.HandlerOptions{})
		if _, err := i.AddEventHandlerWithResyncPeriod(often, 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		if _, err := i.AddEventHandlerWithResyncPeriod(never, 0); err != nil {
			t.Fatal(err)
		}
		run(t, i)
		synctest.Wait()
		for _, l := range []*log{often, never, usual} {
			expect(t, "at the start", l.take(), "add a 1 initial")
		}
		time.Sleep(12 * time.Minute)
		synctest.Wait()
		expect(t, "10 minutes", often.take(), "update a 1>1")
		expect(t, "no period", never.take())
		time.Sleep(time.Hour)
		synctest.Wait()
		expect(t, "no period", never.take())
		expect(t, "the informer's period", usual.take(), "update a 1>1")
	})
}

func TestInformer_RemovedHandlerIsNotCalledAndShutsDown_G4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"))
		i := adapt(s, informer.Options{})
		l, busy := &log{}, &log{}
		hold := make(chan struct{})
		r := join(t, i, l, cache.HandlerOptions{})
		b := join(t, i, cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { <-hold; busy.OnAdd(obj, false) }}, cache.HandlerOptions{})
		run(t, i)
		synctest.Wait()
		l.take()
		if err := cache.ShutDownEventHandler(i, r); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if err := i.RemoveEventHandler(r); err != nil {
			t.Errorf("remove twice: %v, want nothing", err)
		}
		s.Modify(configMap("a", "2"))
		synctest.Wait()
		expect(t, "after the removal", l.take())

		down := make(chan error, 1)
		go func() { down <- cache.ShutDownEventHandler(i, b) }()
		synctest.Wait()
		select {
		case err := <-down:
			t.Error("the handler counts as shut down while its call runs")
			down <- err
		default:
		}
		close(hold)
		if err := <-down; err != nil {
			t.Error(err)
		}
		expect(t, "the call that ran", busy.take(), "add a 1")
		if err := i.RemoveEventHandler(nil); err == nil {
			t.Error("a handle that is not ours is removed without an error")
		}
	})
}

func TestInformer_StoppedTakesNoHandlerAndNoIndexer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"))
		i := adapt(s, informer.Options{})
		if i.IsStopped() {
			t.Error("stopped before the start")
		}
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() { defer close(done); i.Run(stop) }()
		synctest.Wait()
		i.Run(stop) // a second run is logged and returns
		close(stop)
		<-done
		if !i.IsStopped() {
			t.Error("not stopped after the end")
		}
		if _, err := i.AddEventHandler(&log{}); err == nil {
			t.Error("a stopped informer takes a handler")
		}
		if err := i.AddIndexers(cache.Indexers{"v": byV}); err == nil {
			t.Error("a stopped informer takes an indexer")
		}
		if got := i.GetStore().ListKeys(); !slices.Equal(got, []string{"prod/a"}) {
			t.Errorf("the store reads %q after the end, want what it held", got)
		}
	})
}

func TestInformer_TransformIsSetBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"), configMap("b", "bad"), configMap("c", "pod"))
		i := adapt(s, informer.Options{})
		if err := i.SetTransform(func(obj any) (any, error) {
			o := obj.(cmap)
			switch o.Data["v"] {
			case "bad":
				return nil, errors.New("refused")
			case "pod":
				return &corev1.Pod{}, nil
			}
			o.Data["v"] += "!"
			return o, nil
		}); err != nil {
			t.Fatal(err)
		}
		run(t, i)
		synctest.Wait()
		if obj, _, err := i.GetStore().GetByKey("prod/a"); err != nil || obj.(cmap).Data["v"] != "1!" {
			t.Errorf("got %v, %v, want the transformed object", obj, err)
		}
		for _, key := range []string{"prod/b", "prod/c"} {
			if _, _, err := i.GetStore().GetByKey(key); err == nil {
				t.Errorf("%s: no error; an object that the transform spoils is to say so", key)
			}
		}
		if i.SetTransform(nil) == nil {
			t.Error("a transform can be set after the start")
		}
		if err := adapt(s, informer.Options{}).SetTransform(nil); err != nil {
			t.Errorf("a nil transform: %v, want it to be none", err)
		}
	})
}

func TestInformer_RefusesAShardSelector(t *testing.T) {
	i := adapt(newServer(t), informer.Options{}).(interface{ SetShardSelector(sharding.Selector) error })
	if err := errors.Join(i.SetShardSelector(nil), i.SetShardSelector(sharding.Everything())); err != nil {
		t.Errorf("a selector of everything: %v, want it to be none", err)
	}
	half := sharding.NewSelector(sharding.ShardRangeRequirement{Key: "object.metadata.uid", Start: "0x0", End: "0x8"})
	if i.SetShardSelector(half) == nil {
		t.Error("an informer takes a shard selector, and watches all objects")
	}
}

func TestInformer_WatchErrorHandlerHearsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.ListError = errors.New("no list today")
		i := adapt(s, informer.Options{})
		if err := i.SetWatchErrorHandler(nil); err != nil {
			t.Fatal(err)
		}
		l := &log{}
		if err := i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			cache.DefaultWatchErrorHandler(ctx, r, err) // reads the Reflector
			l.add(err.Error())
			panic("costs nothing else")
		}); err != nil {
			t.Fatal(err)
		}
		stop := run(t, i)
		time.Sleep(time.Second)
		stop()
		if got := l.take(); len(got) == 0 || got[0] != "no list today" {
			t.Errorf("the handler heard %q, want the list's error", got)
		}
		if i.SetWatchErrorHandler(func(*cache.Reflector, error) {}) == nil {
			t.Error("a handler can be set after the start")
		}
	})
}

func TestInformer_GetControllerIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"))
		i := adapt(s, informer.Options{})
		c := i.GetController()
		c.Run(nil)
		c.RunWithContext(t.Context())
		if c.HasSynced() || i.HasSynced() {
			t.Error("the controller's Run ran the informer")
		}
		run(t, i)
		synctest.Wait()
		if !c.HasSynced() || !cache.IsDone(c.HasSyncedChecker()) || c.LastSyncResourceVersion() != "1" {
			t.Errorf("the controller says %v, version %q; want what the informer says", c.HasSynced(), c.LastSyncResourceVersion())
		}
	})
}

func TestInformer_LastSyncResourceVersionFollowsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"))
		i := adapt(s, informer.Options{})
		run(t, i)
		synctest.Wait()
		s.Modify(configMap("a", "2"))
		synctest.Wait()
		if got := i.LastSyncResourceVersion(); got != "2" {
			t.Errorf("LastSyncResourceVersion is %q, want 2", got)
		}
		if got := i.GetStore().LastStoreSyncResourceVersion(); got != "2" {
			t.Errorf("LastStoreSyncResourceVersion is %q, want 2", got)
		}
	})
}

func TestInformer_MisuseIsAnError(t *testing.T) {
	i := clientgo.NewSharedIndexInformer[cmap](nil, clientgo.Options{})
	if _, err := i.AddEventHandler(&log{}); err == nil {
		t.Error("a handler joins no informer without an error")
	}
	if _, err := adapt(newServer(t), informer.Options{}).AddEventHandler(nil); err == nil {
		t.Error("a nil handler joins without an error")
	}
	if i.HasSynced() || len(i.GetStore().List()) != 0 || i.GetController() == nil {
		t.Error("an informer that is none has synced, or holds objects")
	}
	bad := adapt(nil, informer.Options{})
	if _, err := bad.AddEventHandler(&log{}); err == nil {
		t.Error("a nil ListerWatcher is taken without an error")
	}
}
