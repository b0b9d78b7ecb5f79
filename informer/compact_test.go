// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/compact"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/kube"
)

// small makes a compact informer whose objects are hardly ever hot, and whose
// dictionary is renewed often.
var small = compact.New(compact.Options{HotObjects: 2, DictionaryBytes: 600})

// kept is how one informer of a pair has answered so far.
type kept[T kube.Object] struct {
	*informer.SharedInformer[T]
	mu     sync.Mutex
	events []string                     // of handlers of every event, since the last comparison
	states map[string]map[string]string // by level-triggered handler and key: what it has
}

// late makes an informer compact when the test says so.
var late = compact.New(compact.Options{HotObjects: 2, DictionaryBytes: 600, WhenFull: true})

// pair is a plain informer and compact ones on the same server.
type pair[T kube.Object] struct {
	t      *testing.T
	server *informertest.Server[T]
	kind   schema.GroupVersionKind
	make   func(key kube.Key, content string) T
	both   []*kept[T]
	strict *atomic.Bool // the transform refuses some objects
	trace  []string
}

var pairKeys = func() (keys []kube.Key) {
	for _, ns := range []string{"m", "n"} {
		for i := range 5 {
			keys = append(keys, kube.Key{Namespace: ns, Name: fmt.Sprintf("object-%d", i)})
		}
	}
	return keys
}()

// text describes an object with all of its content.
func text(obj kube.Object) string {
	if obj == nil {
		return "nothing"
	}
	return strings.ReplaceAll(fmt.Sprintf("%+v", obj), "\n", " ")
}

func (p *pair[T]) start(ctx context.Context, transform bool) {
	for _, how := range []informer.Compact{{}, small, late} {
		i := informer.New[T](p.server, p.kind, informer.Options{Compact: how})
		k := &kept[T]{SharedInformer: i, states: map[string]map[string]string{}}
		p.both = append(p.both, k)
		if transform {
			p.must(i.SetTransform(func(obj T) (T, error) {
				if p.strict.Load() && obj.GetLabels()["label"] == "refused" {
					return obj, errors.New("refused")
				}
				obj.SetAnnotations(map[string]string{"transformed": obj.GetName()})
				return obj, nil
			}))
		}
		p.must(i.AddIndex("label", func(obj T) []string { return []string{obj.GetLabels()["label"], "all"} }))
		p.handler("level", informer.HandlerOptions{Undecodable: true}, k)
		p.handler("every", informer.HandlerOptions{EveryEvent: true, Relists: true}, k)
		go i.Run(ctx)
	}
}

func (p *pair[T]) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// handler adds a handler that records its events.
func (p *pair[T]) handler(name string, opts informer.HandlerOptions, k *kept[T]) {
	opts.Name = name
	if !opts.EveryEvent {
		k.mu.Lock()
		k.states[name] = map[string]string{}
		k.mu.Unlock()
	}
	_, err := k.AddHandler(func(e kube.Event[T]) {
		k.mu.Lock()
		defer k.mu.Unlock()
		bad := ""
		if e.Undecodable != nil {
			bad = fmt.Sprint(e.Undecodable.UID, e.Undecodable.Version)
		}
		e.Undecodable = nil
		old, now := kube.Object(e.Old), kube.Object(e.New)
		var none T
		if old == kube.Object(none) {
			old = nil
		}
		if now == kube.Object(none) {
			now = nil
		}
		e.Old, e.New = none, none
		if opts.EveryEvent {
			k.events = append(k.events, fmt.Sprintf("%s: %+v %s: %s -> %s", name, e, bad, text(old), text(now)))
			return
		}
		// How many changes merge into an event depends on the time.
		has := k.states[name]
		if was, knows := has[e.Key.String()]; knows && old != nil && !strings.HasPrefix(was, text(old)) {
			p.t.Errorf("D5: %s of %s has %s, and is given %s as the old state", name, e.Key, was, text(old))
		}
		switch e.Type {
		case kube.Deleted:
			delete(has, e.Key.String())
		case kube.Undecoded:
			has[e.Key.String()] = text(old) + " undecodable " + bad
		default:
			has[e.Key.String()] = text(now)
		}
	}, opts)
	p.must(err)
}

// compare compares all reads and events.
func (p *pair[T]) compare(op string) {
	p.t.Helper()
	synctest.Wait()
	p.trace = append(p.trace, op)
	for _, k := range p.both[1:] {
		p.compareWith(p.both[0], k)
	}
	for _, k := range p.both {
		k.mu.Lock()
		k.events = nil
		k.mu.Unlock()
	}
}

func (p *pair[T]) compareWith(simple, other *kept[T]) {
	p.t.Helper()
	plain, packed := p.reads(simple), p.reads(other)
	for i := range plain {
		if plain[i] != packed[i] {
			p.t.Fatalf("D5: after %q:\nplain   %s\ncompact %s", p.trace, plain[i], packed[i])
		}
	}
	for _, k := range []*kept[T]{simple, other} {
		k.mu.Lock()
		defer k.mu.Unlock()
	}
	for name, plain := range simple.states {
		if packed := other.states[name]; !maps.Equal(plain, packed) {
			p.t.Fatalf("D5: after %q: handler %s\nplain   has %v\ncompact has %v", p.trace, name, plain, packed)
		}
	}
	// Handlers run at the same time: compare each one's events in order.
	a, b := slices.Clone(simple.events), slices.Clone(other.events)
	byHandler := func(x, y string) int { return strings.Compare(x[:5], y[:5]) }
	slices.SortStableFunc(a, byHandler)
	slices.SortStableFunc(b, byHandler)
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			p.t.Fatalf("D5: after %q: event %d of %d and %d:\nplain   %v\ncompact %v", p.trace, i, len(a), len(b), a[min(i, len(a)):], b[min(i, len(b)):])
		}
	}
}

func (p *pair[T]) reads(k *kept[T]) (out []string) {
	l := k.Lister()
	for _, key := range pairKeys {
		obj, err := l.Get(key)
		out = append(out, fmt.Sprintf("Get %s: %s %v", key, text(obj), err))
	}
	list := func(name string, objects []T, err error) {
		var lines []string
		for _, obj := range objects {
			lines = append(lines, text(obj))
		}
		slices.Sort(lines)
		out = append(out, fmt.Sprintf("%s: %d, %v, %v", name, len(objects), err, lines))
	}
	list("All", slices.Collect(l.All()), nil)
	for _, selector := range []string{"", "label=a", "label!=a", "label in (a,b),other", "!label"} {
		s, err := labels.Parse(selector)
		p.must(err)
		for _, ns := range []string{"", "m"} {
			objects, err := l.List(informer.QueryOptions{Namespace: ns, Selector: s})
			list("List "+selector+" in "+ns, objects, err)
		}
	}
	for _, value := range []string{"a", "b", "all"} {
		objects, err := l.ByIndex("label", value)
		p.must(err)
		list("ByIndex "+value, slices.Collect(objects), nil)
	}
	objects, err := l.List(informer.QueryOptions{Index: "label", IndexValues: []string{"a", "b"}, Selector: labels.Everything()})
	list("List of an index", objects, err)
	values, err := l.IndexValues("label")
	out = append(out, fmt.Sprint(values, err))
	for u := range l.Undecodable() {
		out = append(out, fmt.Sprint(u.Key, u.UID, u.Version, u.Err))
	}
	s := k.Snapshot()
	return append(out, fmt.Sprint(s.Objects, s.Undecodable, s.Tombstones, s.Awaiting, k.Reached()))
}

func (p *pair[T]) step(r *rand.Rand) string {
	key := pairKeys[r.IntN(len(pairKeys))]
	write := func() T {
		obj := p.make(key, strings.Repeat(fmt.Sprintf("content %d of %s. ", r.IntN(5), key.Name), r.IntN(20)))
		set := map[string]string{}
		if label := []string{"a", "b", "refused", ""}[r.IntN(4)]; label != "" {
			set["label"] = label
		}
		if r.IntN(3) == 0 {
			set["other"] = "x"
		}
		obj.SetLabels(set)
		return p.server.Write(obj)
	}
	switch r.IntN(12) {
	case 0, 1, 2, 3:
		write()
		return fmt.Sprint("write ", key)
	case 4:
		p.server.Hold()
		written := write()
		for _, k := range p.both {
			k.Observe(kube.Written{Kind: p.kind, Effect: kube.Stored, Key: key, UID: written.GetUID(), Version: kube.ParseVersion(written.GetResourceVersion()), Object: written})
		}
		return fmt.Sprint("own write ", key)
	case 5:
		if _, ok := p.server.Get(key); ok {
			p.server.Delete(key)
		}
		return fmt.Sprint("delete ", key)
	case 6:
		p.server.SetUndecodable(key, errors.New("bad bytes"))
		return fmt.Sprint("spoil ", key)
	case 7:
		p.server.Hold()
		return "hold"
	case 8:
		p.server.Release()
		return "release"
	case 9:
		p.server.Hold() // or the watches may see some of it
		for range r.IntN(4) {
			write()
		}
		p.server.Compact()
		p.server.Cut(io.EOF)
		p.server.Release()
		time.Sleep(time.Minute)
		return "relist"
	case 10:
		p.strict.Store(!p.strict.Load())
		time.Sleep(6 * time.Minute) // a refused object is tried again
		return fmt.Sprint("strict ", p.strict.Load())
	}
	name := fmt.Sprintf("l%04d", len(p.trace))
	opts := informer.HandlerOptions{Undecodable: r.IntN(2) == 0, EveryEvent: r.IntN(2) == 0}
	for _, k := range p.both {
		p.handler(name, opts, k)
	}
	return "late handler"
}

func newPair[T kube.Object](t *testing.T, kind schema.GroupVersionKind, make func(kube.Key, string) T) *pair[T] {
	return &pair[T]{t: t, server: informertest.NewServer[T](), kind: kind, make: make, strict: new(atomic.Bool)}
}

func historyOf[T kube.Object](t *testing.T, kind schema.GroupVersionKind, make func(kube.Key, string) T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			r := rand.New(rand.NewPCG(seed, 5))
			p := newPair(t, kind, make)
			for range r.IntN(6) {
				p.step(r)
			}
			p.server.Release()
			p.start(ctx, seed%3 == 0)
			p.compare("start")
			for n := range 60 {
				if n == int(20+seed) {
					if !informer.PackNow(p.both[2].SharedInformer) {
						t.Error("the informer does not become compact")
					}
					p.compare("pack")
				}
				p.compare(p.step(r))
			}
			p.server.Release()
			p.compare("end")
			for i, k := range p.both {
				if s := k.Snapshot(); (s.Objects > s.Undecodable && s.Packed == 0) == (i > 0) {
					t.Errorf("informer %d: %d objects take %d bytes packed", i, s.Objects, s.Packed)
				}
			}
		})
	}
}

// A compact informer has the same history as a plain one: each read, index,
// selector and event, through own writes, quarantine, refusals, relists and late
// handlers.
func TestCompact_SameReadsAndEventsAsAPlainInformer_D5(t *testing.T) {
	meta := func(key kube.Key) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	}
	t.Run("built-in", func(t *testing.T) {
		historyOf(t, configMaps, func(key kube.Key, content string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: meta(key), Data: map[string]string{"content": content}}
		})
	})
	t.Run("custom", func(t *testing.T) {
		historyOf(t, fixture.SiteKind, func(key kube.Key, content string) *fixture.Site {
			return &fixture.Site{ObjectMeta: meta(key), Spec: fixture.SiteSpec{Content: content, Replicas: 3}, Status: map[string]string{"phase": content}}
		})
	})
	t.Run("unstructured", func(t *testing.T) {
		historyOf(t, fixture.SiteKind, func(key kube.Key, content string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Site", "metadata": map[string]any{"name": key.Name, "namespace": key.Namespace},
				"spec": map[string]any{"content": content, "replicas": int64(3), "share": 0.5, "hosts": []any{"a", "b", nil}},
			}}
		})
	})
}

// Compact is a setting of the kind: misuse says what to do.
func TestCompact_SaysHowItIsMisused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := func() *informer.SharedInformer[*corev1.ConfigMap] {
			return informer.New(informertest.NewServer[*corev1.ConfigMap](), configMaps, informer.Options{})
		}
		one, other := f(), f()
		if err := one.Compact(informer.Compact{}); err == nil || !strings.Contains(err.Error(), "compact.New") {
			t.Errorf("without a codec: got %v, want what to pass", err)
		}
		if err := one.Compact(small); err != nil {
			t.Error(err)
		}
		if err := one.Compact(small); err != nil {
			t.Errorf("the same again: %v", err)
		}
		if err := one.Compact(compact.New(compact.Options{})); err == nil || !strings.Contains(err.Error(), "same for all handles") {
			t.Errorf("other options: got %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go other.Run(ctx)
		<-other.Synced()
		if err := other.Compact(small); err == nil || !strings.Contains(err.Error(), "Options.Compact") {
			t.Errorf("after the start: got %v", err)
		}
		cancel()
		synctest.Wait()
	})
}

// A code that modifies a compact informer's object is found, and readers get the
// object of the server again.
func TestCompact_MutationsAreFoundAndRepaired_D2(t *testing.T) {
	for name, how := range map[string]informer.Compact{"from the start": small, "before the read": late, "after the read": late} {
		t.Run(name, func(t *testing.T) { mutated(t, how, name) })
	}
}

func mutated(t *testing.T, how informer.Compact, when string) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer[*corev1.ConfigMap]()
		key := kube.Key{Namespace: "ns", Name: "a"}
		server.Write(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string]string{"v": "1"}})
		var found []informer.Mutation
		i := informer.New(server, configMaps, informer.Options{Compact: how, DetectMutations: informer.MutationDetection{
			Rate: 1, OnMutation: func(m informer.Mutation) { found = append(found, m) },
		}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go i.Run(ctx)
		<-i.Synced()
		if when == "before the read" && !informer.PackNow(i) {
			t.Fatal("it does not become compact")
		}
		end := i.MutationDetector().Begin(vandal{})
		obj, err := i.Lister().Get(key)
		if err != nil {
			t.Fatal(err)
		}
		if when == "after the read" && !informer.PackNow(i) {
			t.Fatal("it does not become compact")
		}
		obj.Data["v"] = "2"
		end()
		if len(found) != 1 || !found[0].Repaired || !slices.Contains(found[0].Suspects, "vandal") {
			t.Errorf("found %v, want one mutation by the vandal, repaired", found)
		}
		if obj, err := i.Lister().Get(key); err != nil || obj.Data["v"] != "1" {
			t.Errorf("the next reader gets %v, %v, want the server's object", obj.Data, err)
		}
		cancel()
		synctest.Wait()
	})
}

type vandal struct{}

func (vandal) String() string { return "vandal" }
