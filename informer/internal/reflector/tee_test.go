// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// stage is a DeltaFIFO and its Indexer, with dispatch by hand.
type stage struct {
	fifo  *store.DeltaFIFO
	store *store.Indexer
}

func newStage() stage {
	x := store.NewIndexer(fixture.ConfigMapKind)
	return stage{store.NewDeltaFIFO(x), x}
}

// dispatch applies at most n waiting batches.
func (s stage) dispatch(t *testing.T, n int) {
	t.Helper()
	for ; n > 0; n-- {
		if !s.fifo.Waits() {
			return
		}
		batch, err := s.fifo.PopBatch(t.Context())
		if err == nil {
			_, err = s.store.Apply(batch)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// holds returns what scope 0 of the store shows: "ns/a@3".
func (s stage) holds() string {
	var out []string
	for key, k := range s.store.KnownIn(0) {
		out = append(out, fmt.Sprintf("%s@%s %v", key, k.Version, k.Undecodable))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// teeProgram writes random histories through a tee whose taps join and leave,
// with dispatch on both sides at random times.
type teeProgram struct {
	t       *testing.T
	rnd     *rand.Rand
	model   map[kube.Key]store.Delta
	version kube.Version
	full    stage
	tee     *tee
	taps    []*Tap
	stages  []stage
}

func (p *teeProgram) change() store.Delta {
	p.version++
	key := kube.Key{Namespace: string("ab"[p.rnd.IntN(2)]), Name: fmt.Sprint(p.rnd.IntN(6))}
	old, held := p.model[key]
	if held && p.rnd.IntN(3) == 0 {
		delete(p.model, key)
		old.Type, old.Version, old.Err = store.Deleted, p.version, nil
		return old
	}
	d := store.Delta{Type: store.Updated, Key: key, UID: old.UID, Version: p.version}
	if !held {
		d.Type, d.UID = store.Added, types.UID(p.version.String())
	}
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: d.UID, ResourceVersion: p.version.String()}
	if d.Object = (&corev1.ConfigMap{ObjectMeta: meta}); p.rnd.IntN(5) == 0 {
		d.Object, d.Err, d.Metadata = nil, errors.New("corrupt"), &metav1.PartialObjectMetadata{ObjectMeta: meta}
	}
	p.model[key] = d
	return d
}

func (p *teeProgram) list() {
	if p.rnd.IntN(8) == 0 {
		p.version -= p.version / 2 // a backup is restored
		for key, d := range p.model {
			d.Version -= d.Version / 2
			if d.Object != nil {
				d.Object = kube.Copy(d.Object)
				d.Object.SetResourceVersion(d.Version.String())
			}
			p.model[key] = d
		}
		p.version = max(p.version, 1)
		p.fill(true)
		return
	}
	for range p.rnd.IntN(3) {
		p.change() // a list delivers what a watch missed
	}
	p.fill(false)
}

// fill lists the objects; sometimes the first attempt fails halfway.
func (p *teeProgram) fill(epoch bool) {
	r := p.tee.replace(0)
	if epoch {
		r.Epoch()
	}
	for _, d := range p.model {
		r.Add(d)
	}
	if p.rnd.IntN(4) == 0 {
		r.Abort()
		p.fill(epoch)
		return
	}
	r.Commit(p.version)
}

func (p *teeProgram) join() {
	s := newStage()
	tap := NewTap(listwatch.Scope{}, 0, FIFOSink{s.fifo}, nil)
	if p.rnd.IntN(2) == 0 {
		tap.Namespace = "a"
	}
	p.tee.Join(tap)
	p.taps, p.stages = append(p.taps, tap), append(p.stages, s)
}

func (p *teeProgram) step() {
	switch p.rnd.IntN(12) {
	case 0:
		p.list()
	case 1:
		p.tee.Bookmark(0, p.version)
	case 2:
		if len(p.taps) < 5 {
			p.join()
		}
	case 3:
		p.tee.adopt(p.t.Context(), 0, p.version.String())
	case 4, 5:
		p.full.dispatch(p.t, 1)
	case 6:
		for _, s := range p.stages {
			s.dispatch(p.t, 1)
		}
	default:
		if p.tee.listed {
			p.tee.Push(p.change())
		}
	}
}

// want returns the final state of a reader; metadata: undecodable content does
// not matter.
func (p *teeProgram) want(namespace string, metadata bool) string {
	var out []string
	for key, d := range p.model {
		if namespace == "" || key.Namespace == namespace {
			out = append(out, fmt.Sprintf("%s@%s %v", key, d.Version, d.Err != nil && !metadata))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func TestTee_TapsHoldWhatTheFullScopeHolds_I3(t *testing.T) {
	for seed := range uint64(300) {
		p := &teeProgram{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), model: map[kube.Key]store.Delta{}, full: newStage()}
		p.tee = newTee(FIFOSink{p.full.fifo})
		for range 200 {
			p.step()
		}
		p.list()
		p.tee.Push(p.change())
		p.tee.adopt(p.t.Context(), 0, p.version.String())
		p.full.dispatch(t, 1000)
		if got, want := p.full.holds(), p.want("", false); got != want {
			t.Fatalf("seed %d, full: got %s\nwant %s", seed, got, want)
		}
		for n, s := range p.stages {
			s.dispatch(t, 1000)
			if got, want := s.holds(), p.want(p.taps[n].Namespace, true); got != want {
				t.Fatalf("seed %d, tap %d of namespace %q: got %s\nwant %s", seed, n, p.taps[n].Namespace, got, want)
			}
		}
	}
}

func TestTee_TapThatHasLeftIsFedNoMore(t *testing.T) {
	main, s := newMemory(), newStage()
	e := newTee(main)
	tap := NewTap(listwatch.Scope{}, 0, FIFOSink{s.fifo}, nil)
	e.Join(tap)
	e.adopt(t.Context(), 0, "")
	list := e.replace(0)
	list.Add(store.Delta{Key: kube.Key{Name: "a"}, Version: 1, Object: fixture.ConfigMap("a", "1")})
	tap.leave()
	list.Commit(1)
	e.Push(store.Delta{Type: store.Added, Key: kube.Key{Name: "b"}, Version: 2, Object: fixture.ConfigMap("b", "2")})
	e.Bookmark(0, 3)
	if got := s.fifo.Snapshot().Deltas; got != 0 {
		t.Errorf("%d deltas came after the tap had left; its scope's number may be another's by now", got)
	}
	if len(e.taps) != 0 {
		t.Error("the tee keeps a tap that has left")
	}
}

// A transform of the metadata receives its own objects.
func TestTee_TransformOfATapOwnsItsObject(t *testing.T) {
	main, s := newMemory(), newStage()
	e := newTee(main)
	e.Join(NewTap(listwatch.Scope{}, 0, FIFOSink{s.fifo}, func(o kube.Object) (kube.Object, error) {
		m := o.(fixture.Partial)
		if m.Name == "bad" {
			return nil, errors.New("not this one")
		}
		m.Labels["by"] = "transform"
		return m, nil
	}))
	e.adopt(t.Context(), 0, "")
	full := fixture.ConfigMap("a", "1")
	full.Labels = map[string]string{"by": "server"}
	list := e.replace(0)
	list.Add(store.Delta{Key: kube.KeyOf(full), Version: 1, Object: full})
	list.Add(store.Delta{Key: kube.Key{Name: "bad"}, Version: 2, Object: fixture.ConfigMap("bad", "2")})
	list.Commit(2)
	s.dispatch(t, 10)
	got, _, err := s.store.Get(kube.KeyOf(full))
	if err != nil || got.GetLabels()["by"] != "transform" {
		t.Errorf("got %v and %v, want the transformed metadata", got, err)
	}
	if full.Labels["by"] != "server" {
		t.Error("the transform has changed the full object, which others read")
	}
	if _, _, err := s.store.Get(kube.Key{Name: "bad"}); err == nil || !strings.Contains(err.Error(), "not this one") {
		t.Errorf("got %v, want why there is no such metadata", err)
	}
}

// When the watch that feeds it ends, a metadata scope continues from there with
// its own watch, and returns to a shared one later.
func TestTee_ScopeGoesOnWhenTheFullWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fullWatch := &script{steps: []act{pageOf("10", "", item("a", "1"), item("b", "2")), frames(nil, frame(listwatch.FrameModified, "a", "11"))}}
		full := New(fullWatch, listwatch.Scope{}, 0, newStage().fifo, Options{PagedLists: true})
		own := &metadataScript{script: &script{steps: []act{frames(nil, frame(listwatch.FrameModified, "b", "12"))}}}
		s := newStage()
		alone := New(own, listwatch.Scope{}, 0, s.fifo, Options{PagedLists: true})
		alone.Borrow = func(kube.Version) *Tap {
			tap := NewTap(listwatch.Scope{}, 0, FIFOSink{s.fifo}, nil)
			tap.Lender, tap.State = "full", full.State
			if !full.Tee.Join(tap) {
				return nil
			}
			return tap
		}
		ctx, cancel := context.WithCancel(t.Context())
		short, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = alone.Run(ctx) })
		synctest.Wait() // it takes part in the first list
		wg.Go(func() { _ = full.Run(short) })
		time.Sleep(time.Second)
		s.dispatch(t, 10)
		if got, want := s.holds(), "/a@11 false, /b@2 false"; got != want {
			t.Errorf("fed: got %q, want %q", got, want)
		}
		if current := alone.State(); current.SharedWith != "full" || current.State != state.Live {
			t.Errorf("fed: got state %s, want Live by the watch of another", current)
		}
		stop()
		time.Sleep(time.Second)
		s.dispatch(t, 10)
		if got, want := s.holds(), "/a@11 false, /b@12 false"; got != want {
			t.Errorf("alone: got %q, want %q", got, want)
		}
		if got, want := own.requests(), `watch "11"`; got != want {
			t.Errorf("alone: it asked for %s, want %s: what it has is not listed again", got, want)
		}
		if current := alone.State(); current.SharedWith != "" || current.State != state.Live {
			t.Errorf("alone: got state %s, want Live by a watch of its own", current)
		}
		cancel()
		wg.Wait()
	})
}

// metadataScript is a script of metadata.
type metadataScript struct{ *script }

func (s *metadataScript) List(ctx context.Context, o listwatch.ListOptions) (listwatch.Page[kube.Object], error) {
	_, err := s.script.List(ctx, o)
	return listwatch.Page[kube.Object]{}, err
}

func (s *metadataScript) Watch(ctx context.Context, o listwatch.WatchOptions) (listwatch.Stream[kube.Object], error) {
	stream, err := s.script.Watch(ctx, o)
	return metadataStream{stream}, err
}

type metadataStream struct {
	of listwatch.Stream[kube.Object]
}

func (s metadataStream) Next() (listwatch.Frame[kube.Object], error) {
	f, err := s.of.Next()
	out := listwatch.Frame[kube.Object]{Type: f.Type, InitialEventsEnd: f.InitialEventsEnd, Err: f.Err}
	out.Item = listwatch.Item[kube.Object]{Key: f.Item.Key, ResourceVersion: f.Item.ResourceVersion, Err: f.Item.Err}
	if f.Item.Object != nil {
		out.Item.Object = base.MetadataOf(f.Item.Object, fixture.ConfigMapKind)
	}
	return out, err
}

func (s metadataStream) Close() error { return s.of.Close() }

// A tap that joins during the Reflector's pause does not wait, and does not
// shorten the pause.
func TestTee_TapJoinsDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &script{steps: []act{pageOf("10", "", item("a", "1")), frames(io.EOF), {err: errors.New("gibberish")}, frames(nil)}}
		full := newInto(lw, listwatch.Scope{}, 0, newMemory(), Options{PagedLists: true})
		full.random = func() float64 { return 0.5 }
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { _ = full.Run(ctx) })
		defer wg.Wait()
		defer cancel()
		synctest.Wait()
		before := slices.Clone(lw.at)
		s := newStage()
		full.Tee.Join(NewTap(listwatch.Scope{}, 0, FIFOSink{s.fifo}, nil))
		synctest.Wait()
		s.dispatch(t, 10)
		if v := s.store.Reached(0); v != 10 {
			t.Errorf("the tap has reached %d, want 10 at once", v)
		}
		if !slices.Equal(before, lw.at) {
			t.Errorf("requests at %v, and after the tap had joined at %v: it cut the pause short", before, lw.at)
		}
	})
}
