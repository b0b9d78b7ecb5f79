// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

type cmap = *corev1.ConfigMap

var configMaps = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// run starts an informer on s in the test's bubble. The bubble proves that no
// goroutine is left after stop.
func run(t *testing.T, s server, opts informer.Options) (i *informer.SharedInformer[cmap], stop func()) {
	t.Helper()
	opts.DetectMutations = informertest.NoMutations(t.Error)
	i = informer.New[cmap](s, configMaps, opts)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	return i, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v, want nil after its context ended", err)
		}
	})
}

// log records events as text.
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

// take returns the lines since the last take.
func (l *log) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.mu.lines
	l.mu.lines = nil
	return lines
}

func (l *log) handle(e kube.Event[cmap]) {
	text := e.Type.String() + " " + e.Key.Name
	switch e.Type {
	case kube.Added:
		text += " " + e.New.Data["v"]
		if e.Initial {
			text += " initial"
		}
	case kube.Updated:
		text += " " + e.Old.Data["v"] + ">" + e.New.Data["v"]
		if e.Resync {
			text += " resync"
		}
	case kube.Deleted:
		text += " " + e.Old.Data["v"]
		if e.FinalStateUnknown {
			text += " unseen"
		}
	}
	l.add(text)
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func join(t *testing.T, i *informer.SharedInformer[cmap], handle func(kube.Event[cmap]), opts informer.HandlerOptions) *informer.Registration {
	t.Helper()
	r, err := i.AddHandler(handle, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestInformer_StoreChangesBeforeHandlersAreTold_I2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		i, stop := run(t, s, informer.Options{})
		defer stop()
		lister := i.Lister()
		<-i.Synced()
		told := 0 // by the handler, read when all is idle
		join(t, i, func(e kube.Event[cmap]) {
			told++
			got, err := lister.Get(e.Key)
			switch {
			case e.Type == kube.Deleted && apierrors.IsNotFound(err):
			case e.Type != kube.Deleted && err == nil && kube.ParseVersion(got.ResourceVersion) >= kube.ParseVersion(e.New.ResourceVersion):
			default:
				t.Errorf("told of %s %s, but the store has %v, %v: handlers must find what they are told of", e.Type, e.Key, got, err)
			}
		}, informer.HandlerOptions{})
		for n := range 50 {
			s.put(fmt.Sprintf("k%d", n%5), fmt.Sprint(n))
			if n%7 == 0 {
				synctest.Wait() // else the store may be a deletion ahead of the handler
				s.remove(fmt.Sprintf("k%d", n%5))
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if told < 50 {
			t.Errorf("the handler was told %d times, want at least once for each of 50 changes", told)
		}
	})
}

func TestInformer_HandlersJoinAndLeaveAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		i, stop := run(t, s, informer.Options{})
		defer stop()
		var early, late log
		r := join(t, i, early.handle, informer.HandlerOptions{})
		<-r.Synced()
		expect(t, "early handler after sync", early.take(), "added a 1 initial")
		s.put("a", "2")
		synctest.Wait()

		l := join(t, i, late.handle, informer.HandlerOptions{})
		<-l.Synced()
		expect(t, "late handler is given the present objects first", late.take(), "added a 2 initial")
		s.put("b", "1")
		synctest.Wait()
		expect(t, "late handler", late.take(), "added b 1")
		expect(t, "early handler", early.take(), "updated a 1>2", "added b 1")

		r.Remove()
		s.remove("a")
		synctest.Wait()
		expect(t, "removed handler", early.take())
		expect(t, "the other one goes on", late.take(), "deleted a 2")
	})
}

func TestInformer_BlockedHandlerSeesTheCurrentStateInTheEnd_I4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		s.put("gone", "1")
		s.put("again", "1")
		i, stop := run(t, s, informer.Options{})
		defer stop()
		var slow, quick log
		gate := make(chan struct{})
		r := join(t, i, func(e kube.Event[cmap]) {
			if e.Key.Name == "gate" {
				<-gate
				return
			}
			slow.handle(e)
		}, informer.HandlerOptions{})
		join(t, i, quick.handle, informer.HandlerOptions{})
		<-r.Synced()
		slow.take()
		s.put("gate", "")
		synctest.Wait()
		quick.take()

		for n := 2; n <= 9; n++ {
			s.put("a", fmt.Sprint(n))
			synctest.Wait()
		}
		s.remove("gone")
		synctest.Wait()
		s.remove("again")
		synctest.Wait()
		s.put("again", "2")
		synctest.Wait()
		s.put("brief", "1")
		synctest.Wait()
		s.remove("brief")
		synctest.Wait()
		if got := len(quick.take()); got != 13 {
			t.Errorf("a handler that keeps up was told %d times, want 13: a blocked one must not delay it", got)
		}
		if got := r.Snapshot().Backlog; got > 4 {
			t.Errorf("backlog of the blocked handler is %d, want at most one per key: 4", got)
		}
		close(gate)
		synctest.Wait()
		expect(t, "after the block: merged per key, a changed UID as delete and add, what came and went not at all",
			slow.take(), "updated a 1>9", "deleted gone 1", "deleted again 1", "added again 2")
	})
}

func TestInformer_RelistFindsWhatABrokenWatchMissed_I5(t *testing.T) {
	for name, paged := range map[string]bool{"streaming": false, "paged": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				for _, name := range []string{"kept", "changed", "deleted", "again"} {
					s.put(name, "1")
				}
				i, stop := run(t, s, informer.Options{PagedLists: paged, PageSize: 2})
				defer stop()
				var events log
				r := join(t, i, events.handle, informer.HandlerOptions{})
				<-r.Synced()
				events.take()

				s.Hold()
				s.put("changed", "2")
				s.remove("deleted")
				s.remove("again")
				s.put("again", "2")
				s.put("new", "1")
				s.Compact()
				s.Release()
				s.Cut(io.ErrUnexpectedEOF)
				time.Sleep(time.Minute)
				synctest.Wait()

				got := events.take()
				slices.Sort(got)
				expect(t, "events of the relist", got,
					"added again 2", "added new 1", "deleted again 1 unseen", "deleted deleted 1 unseen", "updated changed 1>2")
			})
		})
	}
}

func TestInformer_UnchangedObjectsAreNotDeliveredAgain_I6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		for n := range 10 {
			s.put(fmt.Sprint(n), "1")
		}
		i, stop := run(t, s, informer.Options{})
		defer stop()
		var events log
		r := join(t, i, events.handle, informer.HandlerOptions{})
		<-r.Synced()
		events.take()
		before, _ := i.Lister().Get(kube.Key{Namespace: "ns", Name: "3"})

		lists := s.Lists()
		s.put("changed", "1")
		synctest.Wait()
		events.take()
		s.Compact()
		s.Cut(io.EOF)
		time.Sleep(time.Minute)
		synctest.Wait()
		// The watch continues from its own version; it only relists if that
		// version is too old.
		s.Hold()
		s.put("changed", "2")
		s.Compact()
		s.Release()
		s.Cut(io.EOF)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.Lists() == lists {
			t.Fatal("the test wants a relist, and there was none")
		}
		expect(t, "a relist tells only what changed", events.take(), "updated changed 1>2")
		if after, _ := i.Lister().Get(kube.Key{Namespace: "ns", Name: "3"}); after != before {
			t.Error("an unchanged object was replaced in the store")
		}
	})
}

func TestInformer_OwnWriteIsReadAtOnceAndToldOnce_R4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		i, stop := run(t, s, informer.Options{})
		defer stop()
		var events log
		r := join(t, i, events.handle, informer.HandlerOptions{})
		<-r.Synced()
		events.take()

		s.Hold() // the watch lags
		written := s.put("a", "2")
		i.Observe(kube.Written{Kind: configMaps, Effect: kube.Stored, Key: kube.KeyOf(written), UID: written.UID, Version: kube.ParseVersion(written.ResourceVersion), Object: written})
		if got, err := i.Lister().Get(kube.KeyOf(written)); err != nil || got.Data["v"] != "2" {
			t.Errorf("Get right after an own write = %v, %v; want what was written", got, err)
		}
		if got, _ := i.Lister().Get(kube.KeyOf(written)); got == written {
			t.Error("the store keeps the caller's own object, which the caller may go on changing")
		}
		gone := s.remove("a")
		i.Observe(kube.Written{Kind: configMaps, Effect: kube.Removed, Key: kube.KeyOf(gone), UID: gone.UID})
		if got, err := i.Lister().Get(kube.KeyOf(gone)); !apierrors.IsNotFound(err) {
			t.Errorf("Get right after an own deletion = %v, %v; want NotFound", got, err)
		}
		synctest.Wait()
		s.Release()
		s.Cut(io.EOF) // the watch catches up from its own version: echoes
		time.Sleep(time.Minute)
		synctest.Wait()
		got := events.take()
		if len(got) == 1 {
			expect(t, "merged", got, "deleted a 1")
		} else {
			expect(t, "each own write is told once, its echo not at all", got, "updated a 1>2", "deleted a 2")
		}
	})
}

func TestInformer_PanickingHandlerCostsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		s.put("bad", "1")
		i, stop := run(t, s, informer.Options{})
		defer stop()
		var own, other log
		r := join(t, i, func(e kube.Event[cmap]) {
			if e.Key.Name == "bad" {
				panic("a fault of the handler")
			}
			own.handle(e)
		}, informer.HandlerOptions{})
		join(t, i, other.handle, informer.HandlerOptions{})
		<-r.Synced()
		s.put("b", "1")
		synctest.Wait()
		got := own.take()
		slices.Sort(got)
		expect(t, "the handler's own other events", got, "added a 1 initial", "added b 1")
		if got := len(other.take()); got != 3 {
			t.Errorf("the other handler was told %d times, want 3", got)
		}
		if got := r.Snapshot().Panics; got != 1 {
			t.Errorf("panics counted: %d, want 1", got)
		}
	})
}

func TestInformer_ResyncGivesEachHandlerItsOwnPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		i, stop := run(t, s, informer.Options{Resync: time.Hour})
		defer stop()
		var hourly, often, never log
		join(t, i, hourly.handle, informer.HandlerOptions{})
		join(t, i, often.handle, informer.HandlerOptions{Resync: 10 * time.Minute})
		join(t, i, never.handle, informer.HandlerOptions{Resync: -1})
		time.Sleep(70 * time.Minute)
		synctest.Wait()
		expect(t, "default period of an hour", hourly.take(), "added a 1 initial", "updated a 1>1 resync")
		if got := len(often.take()); got != 7 {
			t.Errorf("a handler with a period of ten minutes and up to a tenth more was told %d times in 70 minutes, want 7", got)
		}
		expect(t, "no resync", never.take(), "added a 1 initial")
	})
}

func TestInformer_TransformChangesWhatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "secret")
		i := informer.New[cmap](s, configMaps, informer.Options{})
		err := i.SetTransform(func(cm cmap) (cmap, error) {
			if cm.Name == "bad" {
				panic("a fault of the transform")
			}
			cm.Data = nil
			return cm, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go i.Run(ctx)
		<-i.Synced()
		if got, err := i.Lister().Get(kube.Key{Namespace: "ns", Name: "a"}); err != nil || got.Data != nil {
			t.Errorf("Get = %v, %v; want the object without data", got, err)
		}
		s.put("bad", "1")
		s.put("b", "1")
		synctest.Wait()
		var undecodable *kube.UndecodableError
		if _, err := i.Lister().Get(kube.Key{Namespace: "ns", Name: "bad"}); !errors.As(err, &undecodable) {
			t.Errorf("Get of an object that the transform panics on: %v, want an UndecodableError", err)
		}
		if _, err := i.Lister().Get(kube.Key{Namespace: "ns", Name: "b"}); err != nil {
			t.Errorf("Get of another object: %v; one bad object must not harm it", err)
		}
		if err := i.SetTransform(nil); err == nil {
			t.Error("SetTransform on a running informer succeeded; what is stored already would not be transformed")
		}
	})
}

func TestInformer_ReadsBeforeSyncSaySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		s.Fail(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no right to list")))
		i, stop := run(t, s, informer.Options{})
		defer stop()
		synctest.Wait()
		var notSynced *kube.NotSyncedError
		if _, err := i.Lister().Get(kube.Key{Namespace: "ns", Name: "a"}); !errors.As(err, &notSynced) {
			t.Errorf("Get before the first list: %v, want a NotSyncedError and not NotFound, which would be a lie", err)
		}
		current := i.Snapshot().Scopes[0]
		if current.State != state.Forbidden || !strings.Contains(current.Reason, "no right to list") || current.NextTry.IsZero() {
			t.Errorf("state = %v, want Forbidden with the server's words and the next try", current)
		}
		s.Fail(nil)
		<-i.Synced() // it heals without help
		synctest.Wait()
		if got := i.Snapshot().Scopes[0]; got.State != state.Live || got.Reason != "" {
			t.Errorf("state after the right was granted = %v, want Live", got)
		}
	})
}

func TestInformer_Misuse(t *testing.T) {
	i := informer.New[cmap](newServer(), configMaps, informer.Options{})
	if _, err := i.AddHandler(nil, informer.HandlerOptions{}); err == nil {
		t.Error("AddHandler(nil) succeeded")
	}
	if err := i.AddIndex("x", nil); err == nil {
		t.Error("AddIndex with a nil function succeeded")
	}
	err := informer.New[cmap](nil, configMaps, informer.Options{}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "NewListerWatcher") {
		t.Errorf("Run of an informer without a ListerWatcher: %v, want an error that says what to give", err)
	}
}

func TestInformer_SecondRunIsAnErrorAndHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		i, stop := run(t, s, informer.Options{})
		defer stop()
		<-i.Synced()
		if err := i.Run(t.Context()); err == nil {
			t.Error("a second Run succeeded")
		}
		s.put("a", "1")
		synctest.Wait()
		if _, err := i.Lister().Get(kube.Key{Namespace: "ns", Name: "a"}); err != nil {
			t.Errorf("after a second Run the first one's informer gives %v, want what the server has", err)
		}
	})
}

func TestInformer_StopInTheMiddleOfEverythingLeavesNothing(t *testing.T) {
	for _, fault := range []func(server){
		func(server) {},
		func(s server) { s.Fail(apierrors.NewServiceUnavailable("away")) },
		func(s server) { s.Cut(io.ErrUnexpectedEOF) },
		func(s server) { s.Compact(); s.Cut(io.EOF) },
		func(s server) { s.Hold() },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.put("a", "1")
			i, stop := run(t, s, informer.Options{Resync: time.Second})
			join(t, i, func(kube.Event[cmap]) { time.Sleep(time.Millisecond) }, informer.HandlerOptions{})
			<-i.Synced()
			fault(s)
			s.put("a", "2")
			stop()
			if got := s.Watches(); got != 0 {
				t.Errorf("%d watches are open after the end", got)
			}
		})
	}
}
