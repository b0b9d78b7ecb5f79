// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// memory is a sink that stores its input like the Indexer.
type memory struct {
	sync.Mutex
	objects map[kube.Key]kube.Version
	log     []string
}

func newMemory() *memory { return &memory{objects: map[kube.Key]kube.Version{}} }

func (m *memory) Push(d store.Delta) {
	m.Lock()
	defer m.Unlock()
	m.log = append(m.log, fmt.Sprintf("%s %s@%s", d.Type, d.Key.Name, d.Version))
	if d.Type == store.Deleted {
		delete(m.objects, d.Key)
	} else {
		m.objects[d.Key] = d.Version
	}
}

func (m *memory) Bookmark(_ base.ScopeID, v kube.Version) {
	m.Lock()
	defer m.Unlock()
	m.log = append(m.log, "bookmark "+v.String())
}

func (m *memory) Newest(_ base.ScopeID, key kube.Key) kube.Version {
	m.Lock()
	defer m.Unlock()
	return m.objects[key]
}

func (m *memory) Present(base.ScopeID) iter.Seq[store.Delta] {
	return func(func(store.Delta) bool) {}
}

func (m *memory) replace(base.ScopeID) replacement {
	return &memoryList{m: m, objects: map[kube.Key]kube.Version{}}
}

// held returns the names and versions of the stored objects.
func (m *memory) held() string {
	m.Lock()
	defer m.Unlock()
	var out []string
	for k, v := range m.objects {
		out = append(out, k.Name+"@"+v.String())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (m *memory) history() string {
	m.Lock()
	defer m.Unlock()
	return strings.Join(m.log, ", ")
}

type memoryList struct {
	m          *memory
	objects    map[kube.Key]kube.Version
	unreadable bool
	epoch      bool
}

func (l *memoryList) Add(d store.Delta)    { l.objects[d.Key] = d.Version }
func (l *memoryList) Remove(d store.Delta) { delete(l.objects, d.Key) }
func (l *memoryList) Keep(key kube.Key)    { l.objects[key] = l.m.objects[key] }
func (l *memoryList) Heap() int64          { return 0 }
func (l *memoryList) Pack()                {}

func (l *memoryList) Unreadable()                    { l.unreadable = true }
func (l *memoryList) Recompare()                     {}
func (l *memoryList) Epoch()                         { l.epoch = true }
func (l *memoryList) Undone(kube.Version) []kube.Key { return nil }
func (l *memoryList) Abort()                         {}
func (l *memoryList) Commit(v kube.Version) {
	l.m.Lock()
	defer l.m.Unlock()
	entry := "list " + v.String()
	if l.epoch {
		entry += " epoch"
	}
	l.m.log = append(l.m.log, entry)
	if !l.unreadable {
		l.m.objects = map[kube.Key]kube.Version{}
	}
	maps.Copy(l.m.objects, l.objects)
}

// script is a ListerWatcher that answers step by step; after the last step it
// blocks.
type script struct {
	sync.Mutex
	steps []act
	asked []string
	at    []time.Duration
	begun time.Time
}

// act answers one request: an error, a page, or frames.
type act struct {
	err    error
	page   *listwatch.Page[kube.Object]
	frames []listwatch.Frame[kube.Object]
	gap    time.Duration // before each frame and before the end
	end    error         // of the stream; nil: it stays open
}

func (s *script) next(ctx context.Context, what string) act {
	s.Lock()
	if s.begun.IsZero() {
		s.begun = time.Now()
	}
	s.asked = append(s.asked, what)
	s.at = append(s.at, time.Since(s.begun))
	if len(s.steps) == 0 {
		s.Unlock()
		<-ctx.Done()
		return act{err: context.Cause(ctx)}
	}
	defer s.Unlock()
	st := s.steps[0]
	s.steps = s.steps[1:]
	return st
}

func (s *script) List(ctx context.Context, o listwatch.ListOptions) (listwatch.Page[kube.Object], error) {
	what := fmt.Sprintf("list %q", o.ResourceVersion)
	if o.Continue != "" {
		what = "continue " + o.Continue
	}
	if o.Limit == 0 {
		what += " whole"
	}
	st := s.next(ctx, what)
	if st.err == nil && st.page == nil {
		st.err = errors.New("the script has no page here: " + what)
	}
	if st.err != nil {
		return listwatch.Page[kube.Object]{}, st.err
	}
	return *st.page, nil
}

func (s *script) Watch(ctx context.Context, o listwatch.WatchOptions) (listwatch.Stream[kube.Object], error) {
	verb := "watch"
	if o.SendInitialEvents {
		verb = "stream"
	}
	st := s.next(ctx, fmt.Sprintf("%s %q", verb, o.ResourceVersion))
	if st.err != nil {
		return nil, st.err
	}
	return &scriptStream{ctx: ctx, act: st}, nil
}

func (s *script) requests() string {
	s.Lock()
	defer s.Unlock()
	return strings.Join(s.asked, ", ")
}

type scriptStream struct {
	ctx context.Context
	act
}

func (s *scriptStream) Next() (listwatch.Frame[kube.Object], error) {
	if len(s.frames) == 0 && s.end == nil {
		<-s.ctx.Done()
	}
	if !fixture.Pause(s.ctx, s.gap) {
		return listwatch.Frame[kube.Object]{}, s.ctx.Err()
	}
	if len(s.frames) == 0 {
		return listwatch.Frame[kube.Object]{}, s.end
	}
	f := s.frames[0]
	s.frames = s.frames[1:]
	return f, nil
}

func (s *scriptStream) Close() error { return nil }

func item(name, version string) listwatch.Item[kube.Object] {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	return listwatch.Item[kube.Object]{Key: kube.Key{Name: name}, ResourceVersion: version, Object: obj}
}

func frame(typ listwatch.FrameType, name, version string) listwatch.Frame[kube.Object] {
	return listwatch.Frame[kube.Object]{Type: typ, Item: item(name, version)}
}

func bookmarkAt(version string, end bool) listwatch.Frame[kube.Object] {
	return listwatch.Frame[kube.Object]{Type: listwatch.FrameBookmark, Item: listwatch.Item[kube.Object]{ResourceVersion: version}, InitialEventsEnd: end}
}

func pageOf(version, more string, items ...listwatch.Item[kube.Object]) act {
	return act{page: &listwatch.Page[kube.Object]{Items: items, ResourceVersion: version, Continue: more}}
}

func frames(end error, all ...listwatch.Frame[kube.Object]) act {
	return act{frames: all, end: end}
}

func errorFrame(err error) listwatch.Frame[kube.Object] {
	return listwatch.Frame[kube.Object]{Type: listwatch.FrameError, Err: err}
}

var errGone = apierrors.NewResourceExpired("too old resource version: 1 (393)")

func tooLargeVersion() error {
	err := apierrors.NewTimeoutError("Too large resource version: 99, current: 5", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	return err
}

// reflectFor runs a Reflector over lw for the given time.
func reflectFor(t *testing.T, d time.Duration, lw listwatch.ListerWatcher[kube.Object], opts Options) (*memory, state.Scope) {
	t.Helper()
	m := newMemory()
	r := newInto(lw, listwatch.Scope{}, 0, m, opts)
	r.At(lw)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Errorf("run: got %v, want nil when the context ends", err)
		}
	})
	time.Sleep(d)
	synctest.Wait()
	current := r.State()
	cancel()
	wg.Wait()
	if got := r.State().State; got != state.Stopped {
		t.Errorf("after the end the state is %s, want Stopped", got)
	}
	return m, current
}

func TestReflector_Scripts(t *testing.T) {
	paged := Options{PagedLists: true}
	ab, old := pageOf("10", "", item("a", "1"), item("b", "2")), pageOf("5", "", item("a", "1"))
	for _, c := range []struct {
		name  string
		opts  Options
		steps []act
		asked string // the requests
		held  string
		state state.State
	}{
		{"pages, then a watch", paged,
			[]act{pageOf("10", "p2", item("a", "1")), pageOf("10", "", item("b", "2")), frames(nil, frame(listwatch.FrameModified, "a", "11"))},
			`list "", continue p2, watch "10"`, "a@11 b@2", state.Live},
		{"from the server's cache", Options{PagedLists: true, ListFromCache: true},
			[]act{ab, frames(nil)}, `list "0", watch "10"`, "a@1 b@2", state.Live},
		{"streaming list goes on as the watch", Options{},
			[]act{frames(nil, frame(listwatch.FrameAdded, "a", "1"), frame(listwatch.FrameAdded, "b", "2"), bookmarkAt("10", true), frame(listwatch.FrameDeleted, "a", "11"))},
			`stream ""`, "b@2", state.Live},
		{"changes inside of a streaming list", Options{},
			[]act{frames(nil, frame(listwatch.FrameAdded, "a", "1"), frame(listwatch.FrameAdded, "b", "2"), frame(listwatch.FrameDeleted, "a", "3"), frame(listwatch.FrameModified, "b", "4"), frame(listwatch.FrameDeleted, "c", "5"), frame(listwatch.FrameAdded, "c", "6"), bookmarkAt("10", true))},
			`stream ""`, "b@4 c@6", state.Live},
		{"streaming list is refused", Options{},
			[]act{{err: apierrors.NewBadRequest("sendInitialEvents is forbidden")}, ab, frames(nil)},
			`stream "", list "", watch "10"`, "a@1 b@2", state.Live},
		{"streaming list ends early, twice", Options{},
			[]act{frames(io.EOF, frame(listwatch.FrameAdded, "a", "1")), frames(io.ErrUnexpectedEOF, frame(listwatch.FrameAdded, "a", "1")), ab, frames(nil)},
			`stream "", stream "", list "", watch "10"`, "a@1 b@2", state.Live},
		{"streaming list never ends", Options{},
			[]act{frames(nil, frame(listwatch.FrameAdded, "a", "1")), ab, frames(nil)},
			`stream "", list "", watch "10"`, "a@1 b@2", state.Live},
		{"watch ends and goes on from what it saw", paged,
			[]act{ab, frames(io.EOF, frame(listwatch.FrameModified, "a", "11"), bookmarkAt("15", false)), frames(io.ErrUnexpectedEOF, frame(listwatch.FrameDeleted, "b", "16")), frames(nil)},
			`list "", watch "10", watch "15", watch "16"`, "a@11", state.Live},
		{"410 when the watch is opened", paged,
			[]act{ab, {err: errGone}, pageOf("20", "", item("a", "12")), frames(nil)},
			`list "", watch "10", list "10", watch "20"`, "a@12", state.Live},
		{"410 as a frame", paged,
			[]act{ab, frames(io.EOF, errorFrame(errGone)), pageOf("20", "", item("a", "12")), frames(nil)},
			`list "", watch "10", list "10", watch "20"`, "a@12", state.Live},
		{"410 as a frame, streaming", Options{},
			[]act{frames(io.EOF, frame(listwatch.FrameAdded, "a", "1"), bookmarkAt("10", true), errorFrame(errGone)), frames(nil, frame(listwatch.FrameAdded, "b", "12"), bookmarkAt("20", true))},
			`stream "", stream "10"`, "b@12", state.Live},
		{"too large", paged,
			[]act{ab, {err: errGone}, {err: tooLargeVersion()}, pageOf("20", "", item("c", "3")), frames(nil)},
			`list "", watch "10", list "10", list "", watch "20"`, "c@3", state.Live},
		{"continue token expires, then the list is asked for whole", paged,
			[]act{pageOf("10", "p2", item("x", "1")), {err: errGone}, pageOf("11", "p2", item("x", "1")), {err: errGone}, ab, frames(nil)},
			`list "", continue p2, list "", continue p2, list "" whole, watch "10"`, "a@1 b@2", state.Live},
		{"pages of different versions are not mixed", paged,
			[]act{pageOf("10", "p2", item("x", "1")), pageOf("11", "", item("y", "1")), ab, frames(nil)},
			`list "", continue p2, list "", watch "10"`, "a@1 b@2", state.Live},
		{"silence of a stream that had bookmarks", paged,
			[]act{ab, frames(nil, bookmarkAt("15", false)), frames(nil), pageOf("16", "", item("a", "12")), frames(nil)},
			`list "", watch "10", watch "15", list "", watch "16"`, "a@12", state.Live},
		{"versions went back", paged,
			[]act{ab, {err: tooLargeVersion()}, old, old, old, frames(nil)},
			`list "", watch "10", list "", list "", list "", watch "5"`, "a@1", state.Live},
		{"one list of many is older", paged,
			[]act{ab, {err: tooLargeVersion()}, old, old, pageOf("20", "", item("a", "12")), frames(nil)},
			`list "", watch "10", list "", list "", list "", watch "20"`, "a@12", state.Live},
		{"list is older than demanded", paged,
			[]act{ab, {err: errGone}, old, pageOf("20", "", item("a", "12")), frames(nil)},
			`list "", watch "10", list "10", list "", watch "20"`, "a@12", state.Live},
		{"list has no version", paged,
			[]act{ab, {err: errGone}, pageOf("", "", item("a", "1")), pageOf("20", "", item("a", "12")), frames(nil)},
			`list "", watch "10", list "10", list "", watch "20"`, "a@12", state.Live},
		{"streaming list is older than demanded", Options{},
			[]act{frames(io.EOF, frame(listwatch.FrameAdded, "a", "1"), bookmarkAt("10", true), errorFrame(errGone)), frames(nil, frame(listwatch.FrameAdded, "b", "2"), bookmarkAt("5", true)), pageOf("20", "", item("a", "12")), frames(nil)},
			`stream "", stream "10", list "", watch "20"`, "a@12", state.Live},
		{"pages lead to themselves, then the list is asked for whole", paged,
			[]act{pageOf("10", "p2", item("a", "1")), pageOf("10", "p2", item("b", "1")), ab, frames(nil)},
			`list "", continue p2, list "" whole, watch "10"`, "a@1 b@2", state.Live},
		{"pages begin as earlier ones", paged,
			[]act{pageOf("10", "p2", item("a", "1")), pageOf("10", "p3", item("a", "1")), ab, frames(nil)},
			`list "", continue p2, list "" whole, watch "10"`, "a@1 b@2", state.Live},
		{"source without streaming lists", Options{},
			[]act{{err: errors.New("what is sendInitialEvents?")}, ab, frames(nil)},
			`stream "", list "", watch "10"`, "a@1 b@2", state.Live},
		{"source that says so", Options{},
			[]act{{err: errors.ErrUnsupported}, ab, frames(nil)},
			`stream "", list "", watch "10"`, "a@1 b@2", state.Live},
		{"source that ends streaming lists at once", Options{},
			[]act{frames(io.EOF), ab, frames(nil)},
			`stream "", list "", watch "10"`, "a@1 b@2", state.Live},
		{"streaming lists alone fail", Options{},
			[]act{{err: apierrors.NewInternalError(errors.New("boom"))}, {err: apierrors.NewInternalError(errors.New("boom"))}, ab, {err: errGone}, pageOf("20", "", item("a", "12")), frames(nil)},
			`stream "", stream "", list "", watch "10", list "10", watch "20"`, "a@12", state.Live},
		{"403", paged, []act{{err: apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no"))}, ab, frames(nil)},
			`list "", list "", watch "10"`, "a@1 b@2", state.Live},
		{"error frame without words", paged, []act{ab, frames(io.EOF, errorFrame(nil)), frames(nil)},
			`list "", watch "10", watch "10"`, "a@1 b@2", state.Live},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lw := &script{steps: c.steps}
				m, current := reflectFor(t, 6*time.Minute, lw, c.opts)
				// Requests after a stream's timeout do not matter.
				if got := lw.requests(); got != c.asked && !strings.HasPrefix(got, c.asked+", ") {
					t.Errorf("got requests %s\n           want %s", got, c.asked)
				}
				if got := m.held(); got != c.held {
					t.Errorf("got %q, want %q: what is kept is not what the server has\n%s", got, c.held, m.history())
				}
				if len(lw.steps) > 0 {
					t.Errorf("%d steps were never reached, in state %s", len(lw.steps), current)
				}
			})
		})
	}
}

func TestReflector_RelistFindsWhatABrokenWatchMissed_I5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &script{steps: []act{
			pageOf("10", "", item("stays", "1"), item("goes", "2"), item("changes", "3")),
			frames(io.EOF, errorFrame(errGone)), // between 10 and 20 there were no events
			pageOf("20", "", item("stays", "1"), item("changes", "15"), item("comes", "16")),
			frames(nil),
		}}
		m, current := reflectFor(t, time.Minute, lw, Options{PagedLists: true})
		if got, want := m.held(), "changes@15 comes@16 stays@1"; got != want {
			t.Errorf("got %q, want %q: a change that the watch missed is lost", got, want)
		}
		if current.Relists[steps.RelistExpired] != 1 || current.Watches != 2 || current.State != state.Live {
			t.Errorf("got relists %v, %d watches, state %s; want one for an expired version, 2, Live", current.Relists, current.Watches, current.State)
		}
	})
}

func TestReflector_RetriesAreBoundedAndJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &script{}
		for range 1000 {
			lw.steps = append(lw.steps, act{err: &kube.UnexpectedAnswerError{}})
		}
		_, current := reflectFor(t, time.Hour, lw, Options{PagedLists: true})
		if n := len(lw.at); n < 110 || n > 300 {
			t.Errorf("got %d tries in an hour, want between 110 and 300: not more than one in 15 s at the end, and at least one in 30 s", n)
		}
		if current.State != state.Stale || current.Reason == "" || current.NextTry.IsZero() {
			t.Errorf("got %+v, want Stale with a reason and a next try", current)
		}
	})
}

func TestReflector_RetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &script{steps: []act{{err: apierrors.NewTooManyRequests("slow down", 40)}, pageOf("1", ""), frames(nil)}}
		reflectFor(t, 2*time.Minute, lw, Options{PagedLists: true})
		if len(lw.at) < 2 || lw.at[1] < 40*time.Second || lw.at[1] > 45*time.Second {
			t.Errorf("asked again after %v, want 40 s and a little more", lw.at)
		}
	})
}

func TestReflector_SaysWhyItHasNotSynced_I9(t *testing.T) {
	for _, c := range []struct {
		err    error
		want   state.State
		reason string
	}{
		{apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no right")), state.Forbidden, "no right"},
		{apierrors.NewUnauthorized("who are you"), state.Unauthorized, "who are you"},
		{&kube.NotServedError{Kind: fixture.SiteKind}, state.NotServed, "Site"},
		{errors.New("gibberish"), state.Stale, "gibberish"},
	} {
		synctest.Test(t, func(t *testing.T) {
			lw := &script{}
			for range 1000 {
				lw.steps = append(lw.steps, act{err: c.err})
			}
			var lines []string
			log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
			_, current := reflectFor(t, time.Hour, lw, Options{Logger: log})
			if current.State != c.want || !strings.Contains(current.Reason, c.reason) || current.Synced {
				t.Errorf("got %s, want %s because of %q", current, c.want, c.reason)
			}
			if n := len(lw.at); n < 50 {
				t.Errorf("%s: got %d tries in an hour, want one a minute at least: it must come back by itself", c.want, n)
			}
			first := func(line string) bool {
				return strings.Contains(line, `"msg"="Not up to date: `) && strings.Contains(line, `"error"=`)
			}
			if n := len(lines); n != 3 || !first(lines[0]) || first(lines[1]) || first(lines[2]) {
				t.Errorf("%s: got %d lines of log in an hour, want a warning, and reminders at a falling rate:\n%s", c.want, n, strings.Join(lines, "\n"))
			}
		})
	}
}

func TestReflector_UnreadableItemSuspendsDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := pageOf("20", "", item("a", "12"))
		bad.page.Unreadable, bad.page.UnreadableErr = 1, errors.New("no name")
		lw := &script{steps: []act{pageOf("10", "", item("a", "1"), item("b", "2")), {err: errGone}, bad, frames(nil)}}
		m, current := reflectFor(t, time.Minute, lw, Options{PagedLists: true})
		if got, want := m.held(), "a@12 b@2"; got != want {
			t.Errorf("got %q, want %q: b may be the item that cannot be read", got, want)
		}
		if current.Unreadable != 1 || current.UnreadableReason == "" {
			t.Errorf("got %+v, want one unreadable object with a reason", current)
		}
	})
}

func TestReflector_BadObjectOfAWatchGoesOn_I8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		corrupt := frame(listwatch.FrameModified, "a", "11")
		corrupt.Item.Object, corrupt.Item.Err = nil, errors.New("corrupt")
		nameless := listwatch.Frame[kube.Object]{Type: listwatch.FrameModified, Item: listwatch.Item[kube.Object]{Err: errors.New("no name")}}
		dead := frame(listwatch.FrameDeleted, "b", "12")
		dead.Item.Object, dead.Item.Err = nil, errors.New("corrupt")
		lw := &script{steps: []act{
			pageOf("10", "", item("a", "1"), item("b", "2")), frames(nil, corrupt, nameless, dead, frame(listwatch.FrameAdded, "c", "13")),
			pageOf("13", "", item("a", "11"), item("c", "13")), frames(nil, nameless), // the list makes up for the frame without a name
		}}
		m, current := reflectFor(t, time.Minute, lw, Options{PagedLists: true})
		if got, want := m.held(), "a@11 c@13"; got != want {
			t.Errorf("got %q, want %q: %s", got, want, m.history())
		}
		if current.Unreadable != 1 || current.State != state.Live {
			t.Errorf("got %+v, want one unreadable event and Live", current)
		}
	})
}
