// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/fielddiff"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
)

func newTestRecorder(t testing.TB, runs, bytes int) *recorder[Key] {
	t.Helper()
	r, err := newRecorder[Key](runs, bytes)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var dawn = time.Unix(1_790_000_000, 0)

// ranOnce records a run of key with some requests.
func ranOnce(r *recorder[Key], key Key, id uint64, requests int, outcome Outcome) {
	rec := r.begin(key)
	rec.id = id
	for i := range requests {
		n := rec.add(contextvalues.Request{Verb: "get", Path: fmt.Sprintf("/api/v1/namespaces/%s/configmaps/%s-%d", key.Namespace, key.Name, i), Kind: "ConfigMap"}, time.Millisecond)
		if n >= 0 {
			rec.answer(n, contextvalues.Answer{Code: 200, Bytes: 10, Ended: true}, 2*time.Millisecond)
		}
	}
	began := dawn.Add(time.Duration(id) * time.Second)
	cause := source.Cause{Source: "kind Website", Type: kube.Updated, Object: Key{Namespace: strings.Clone(key.Namespace), Name: strings.Clone(key.Name)}}
	rec.setCauses(Causes{First: cause, Last: cause, Count: 1, Since: began.Add(-time.Second)}, began)
	err := ""
	if outcome == OutcomeError {
		err = "failed"
	}
	rec.setEnd(action{outcome: outcome}, "", err, time.Second)
	r.end(key, rec, nil)
}

func keyOf(n int) Key { return Key{Namespace: "shop", Name: fmt.Sprintf("website-%06d", n)} }

func idsOf(runs []PastRun) (ids []string) {
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestRecorder_KeepsTheLastRunsOfEachKey_R29(t *testing.T) {
	r := newTestRecorder(t, 3, 0)
	for id := range 5 {
		ranOnce(r, keyOf(1), uint64(id), 1, OutcomeDone)
	}
	ranOnce(r, keyOf(2), 9, 0, OutcomeDone)
	if got, want := idsOf(r.runs(keyOf(1))), []string{"2", "3", "4"}; !slices.Equal(got, want) {
		t.Errorf("the runs are %q, want the last three, %q", got, want)
	}
	if got := idsOf(r.runs(keyOf(2))); !slices.Equal(got, []string{"9"}) {
		t.Errorf("the runs of another key are %q, want its one", got)
	}
	if got := r.runs(keyOf(3)); got != nil {
		t.Errorf("the runs of a key that has not run are %v, want nil", got)
	}
}

// modelRecorder is a recorder as it is described.
type modelRecorder struct {
	keys []Key // in the order of their last runs
	runs map[Key][]string
}

func (m *modelRecorder) ran(key Key, id uint64, most int) {
	m.keys = append(slices.DeleteFunc(m.keys, func(k Key) bool { return k == key }), key)
	if m.runs[key] = append(m.runs[key], fmt.Sprintf("%x", id)); len(m.runs[key]) > most {
		m.runs[key] = m.runs[key][1:]
	}
}

// evict drops what is to go first.
func (m *modelRecorder) evict() {
	for _, key := range m.keys {
		if len(m.runs[key]) > 1 {
			m.runs[key] = m.runs[key][1:]
			return
		}
	}
	delete(m.runs, m.keys[0])
	m.keys = m.keys[1:]
}

func (m *modelRecorder) count() (n int) {
	for _, runs := range m.runs {
		n += len(runs)
	}
	return n
}

func TestRecorder_QuietKeysLoseTheirOlderRunsFirst_R29(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := newTestRecorder(t, 4, leastRecordBytes)
	m := modelRecorder{runs: map[Key][]string{}}
	evicted := false
	for id := range uint64(5000) {
		n := random.IntN(30)
		if random.IntN(4) == 0 {
			n = random.IntN(400)
		}
		ranOnce(r, keyOf(n), id, random.IntN(4), OutcomeDone)
		m.ran(keyOf(n), id, 4)
		kept := 0
		for _, h := range r.histories() {
			kept += len(h.runs)
		}
		for m.count() > kept {
			m.evict()
			evicted = true
		}
		if r.mu.bytes > leastRecordBytes {
			t.Fatalf("the runs take %d bytes, more than %d", r.mu.bytes, leastRecordBytes)
		}
		if id%97 == 0 || id == 4999 {
			for n := range 400 {
				if got, want := idsOf(r.runs(keyOf(n))), m.runs[keyOf(n)]; !slices.Equal(got, want) {
					t.Fatalf("after run %x the runs of %s are %q, want %q", id, keyOf(n), got, want)
				}
			}
		}
	}
	if !evicted {
		t.Error("nothing was evicted; the test looks at too little")
	}
}

func TestRecorder_CountsItsMemory_R29(t *testing.T) {
	for name, row := range map[string]struct{ keys, runs, requests int }{
		"one run without requests": {4000, 1, 0},
		"eight runs, one request":  {500, 8, 1},
		"runs with five requests":  {500, 2, 5},
		"with too many requests":   {30, 4, 40},
	} {
		r := newTestRecorder(t, 0, 1<<30)
		before := heap()
		for i := range row.runs {
			for n := range row.keys {
				ranOnce(r, keyOf(n), uint64(i), row.requests, OutcomeDone)
			}
		}
		is := float64(heap() - before)
		if said := float64(r.mu.bytes); math.Abs(said-is) > 0.2*is {
			t.Errorf("%s: says %.0f bytes, and takes %.0f", name, said, is)
		}
		runtime.KeepAlive(r)
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestRecorder_GivesItsMemoryBack_R29(t *testing.T) {
	r := newTestRecorder(t, 0, 0)
	running := r.begin(keyOf(0))
	for n := range 100 {
		ranOnce(r, keyOf(n), 1, 2, OutcomeDone)
	}
	r.close()
	r.end(keyOf(0), running, nil)
	if r.mu.keys != nil || r.mu.latest != nil || r.mu.quietest != nil || r.mu.thick != nil || r.mu.unused != nil || r.mu.bytes != 0 {
		t.Errorf("after the end there are still runs: %+v", &r.mu)
	}
	if page := r.page(KeysQuery{}); page.Recorded != 0 || r.runs(keyOf(0)) != nil {
		t.Errorf("after the end a page has %d keys", page.Recorded)
	}
}

func TestRecorder_RecordsAreUsedAgain(t *testing.T) {
	r := newTestRecorder(t, 8, 0)
	began, key := time.Now(), keyOf(1)
	run := func() {
		rec := r.begin(key)
		rec.answer(rec.add(contextvalues.Request{Verb: "get", Path: "/api/v1/namespaces/shop/configmaps/web"}, 1), contextvalues.Answer{Code: 200}, 2)
		rec.setCauses(Causes{Count: 1}, began)
		rec.setEnd(action{outcome: OutcomeDone}, "", "", 0)
		r.end(key, rec, nil)
	}
	for range 20 {
		run()
	}
	if n := testing.AllocsPerRun(100, run); n > 0 {
		t.Errorf("a run allocates %.1f times, want never: the records of older ones are used again", n)
	}
}

func TestRecorder_NaNsAndNone(t *testing.T) {
	r, err := newRecorder[float64](0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if rec := r.begin(math.NaN()); rec != nil {
		t.Error("a run of a NaN is recorded, which could not be found again")
	}
	off, err := newRecorder[string](-1, 0)
	if err != nil || off != nil {
		t.Errorf("got %v, %v, want none", off, err)
	}
	off.close()
	if rec := off.begin("a"); rec != nil || off.runs("a") != nil || off.page(KeysQuery{}).Recorded != 0 {
		t.Error("a recorder that is off has records")
	}
	for _, row := range []struct{ runs, bytes int }{{-1, 1 << 20}, {0, -1}, {0, 100}} {
		if _, err := newRecorder[string](row.runs, row.bytes); err == nil {
			t.Errorf("%d runs in %d bytes are no misuse", row.runs, row.bytes)
		}
	}
}

func TestRecorder_PagesOfKeys(t *testing.T) {
	r := newTestRecorder(t, 2, 0)
	for n := range 1000 {
		ranOnce(r, keyOf(n), uint64(n), 0, OutcomeDone)
	}
	ranOnce(r, keyOf(3), 2000, 0, OutcomeError)
	ranOnce(r, keyOf(3), 2010, 0, OutcomeConflict)
	ranOnce(r, keyOf(3), 2020, 0, OutcomeError)
	ranOnce(r, keyOf(4), 2030, 0, OutcomeError)
	ranOnce(r, keyOf(4), 2040, 0, OutcomeDone)

	page := r.page(KeysQuery{Limit: 2})
	if len(page.Keys) != 2 || page.Keys[0].Key != keyOf(4).String() || page.Keys[1].Key != keyOf(3).String() {
		t.Errorf("the first page is %+v, want what has run last", page.Keys)
	}
	if page.Matching != 1000 || page.Recorded != 1000 || page.Failing != 1 || page.Outcomes[OutcomeDone] != 999 || page.Outcomes[OutcomeError] != 1 || page.Bytes != r.mu.bytes {
		t.Errorf("the sums are %+v", page)
	}
	three := page.Keys[1]
	if three.Runs != 4 || three.Recorded != 2 || three.Err != "failed" || !three.FailingSince.Equal(dawn.Add(2001*time.Second)) ||
		!three.Began.Equal(dawn.Add(2020*time.Second)) || !three.Ended.Equal(dawn.Add(2021*time.Second)) {
		t.Errorf("the sum of a key that fails is %+v", three)
	}
	page = r.page(KeysQuery{
		Match:   func(k KeyRuns) bool { return strings.HasSuffix(k.Key, "7") },
		Compare: func(a, b KeyRuns) int { return strings.Compare(a.Key, b.Key) },
		Skip:    1, Limit: 1,
	})
	if page.Matching != 100 || page.Recorded != 1000 || len(page.Keys) != 1 || page.Keys[0].Key != keyOf(17).String() {
		t.Errorf("the second page of one key is %+v", page)
	}
	if page = r.page(KeysQuery{Skip: 2, Limit: 3}); len(page.Keys) != 3 || page.Keys[0].Key != keyOf(999).String() || page.Matching != 1000 || page.Outcomes[OutcomeDone] != 999 {
		t.Errorf("a page in the middle is %+v", page)
	}
	if page = r.page(KeysQuery{Key: keyOf(3).String()}); len(page.Keys) != 1 || page.Keys[0].Runs != 4 || page.Matching != 1 || page.Recorded != 1 {
		t.Errorf("the page of one key is %+v", page)
	}
	if page = r.page(KeysQuery{Key: "gone"}); len(page.Keys) != 0 || page.Recorded != 0 {
		t.Errorf("the page of a key that never ran is %+v", page)
	}
	if page = r.page(KeysQuery{Skip: 5000}); len(page.Keys) != 0 || page.Matching != 1000 {
		t.Errorf("a page behind the last is %+v", page)
	}
	if page = r.page(KeysQuery{}); len(page.Keys) != 100 {
		t.Errorf("a page has %d keys by default, want 100", len(page.Keys))
	}
	if page = r.page(KeysQuery{Limit: -1}); len(page.Keys) != 1000 {
		t.Errorf("a page without a limit has %d keys, want all", len(page.Keys))
	}
}

func TestRecord_TextsAreBounded_R29(t *testing.T) {
	long := strings.Repeat("ä", 50_000)
	r := newTestRecorder(t, 0, 0)
	rec := r.begin(keyOf(1))
	for range mostRequests + 3 {
		if n := rec.add(contextvalues.Request{Verb: "update", Path: "/" + long, Kind: long}, 0); n >= 0 {
			paths := slices.Repeat([]string{long[:160]}, 8)
			rec.affect(n, kube.Written{Kind: schema.GroupVersionKind{Kind: long}}, effectChanged, fielddiff.Fields{Paths: paths, More: 1 << 20})
		}
	}
	rec.setEnd(action{outcome: OutcomeError}, long, long, 0)
	if n := len(rec.text); n > math.MaxUint16 || rec.size() > leastRecordBytes {
		t.Errorf("a run has %d bytes of text and takes %d, want at most %d", n, rec.size(), leastRecordBytes)
	}
	run := rec.pastRun()
	if len(run.Requests) != mostRequests || run.MoreRequests != 3 {
		t.Errorf("%d requests, and %d more, want %d and 3", len(run.Requests), run.MoreRequests, mostRequests)
	}
	last := run.Requests[mostRequests-1]
	if len(last.Fields) != 8 || last.Fields[7] != long[:160] || last.MoreFields != math.MaxUint16 || !strings.HasPrefix(last.Path, "/ää") || !strings.HasSuffix(run.Err, "ä…") {
		t.Errorf("the last request is %.300v", last)
	}
}

// BenchmarkRecorder is one run of one of 1000 keys, without and with a request.
func BenchmarkRecorder(b *testing.B) {
	for _, requests := range []int{0, 1} {
		b.Run(fmt.Sprint("requests=", requests), func(b *testing.B) {
			r, _ := newRecorder[Key](0, 0)
			var keys []Key
			for n := range 1000 {
				keys = append(keys, keyOf(n))
			}
			var s sending
			why := Causes{First: source.Cause{Source: "kind Website"}, Count: 1}
			began := time.Now()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				key := keys[i%len(keys)]
				s.begin(r.begin(key), began)
				for range requests {
					n := s.sent(contextvalues.Request{Verb: "get", Path: "/api/v1/namespaces/shop/configmaps/web", Kind: "ConfigMap"})
					s.answered(n, contextvalues.Answer{Code: 200})
					s.answered(n, contextvalues.Answer{Code: 200, Bytes: 10, Ended: true})
				}
				rec, _ := s.end()
				rec.setCauses(why, began)
				rec.setEnd(action{outcome: OutcomeDone}, "", "", time.Second)
				r.end(key, rec, nil)
			}
		})
	}
}
