// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"
)

const (
	defaultRecordRuns  = 8
	defaultRecordBytes = 4 << 20
	leastRecordBytes   = 128 << 10 // a record takes less
	mostUnused         = 16        // records that are kept for reuse
	largestUnused      = 4 << 10   // bytes of such a record
)

// recorder keeps the last runs of each key, in bounded memory. If that is full, the keys that have
// not run for longest lose their older runs and then, if every key has but one, that. A nil
// recorder records nothing. Safe for concurrent use.
type recorder[K comparable] struct {
	most  int   // runs of a key
	limit int64 // bytes
	mu    struct {
		sync.Mutex
		keys map[K]*history[K]
		// quietest and latest are the ends of a list of all histories in the order of their last
		// runs. Those before thick have one run each; nil: so has every history.
		quietest, latest, thick *history[K]
		bytes                   int64
		unused                  []*record
		found                   map[*history[K]]bool // those with findings
		closed                  bool
	}
}

// history has the last runs of a key.
type history[K comparable] struct {
	key           K
	runs          []*record // the oldest first
	count         int       // of all runs
	failing       int64     // since when, in nanoseconds since 1970; 0: the last run did not fail
	own           int64     // bytes, but for the records
	detector      detector
	before, after *history[K]
}

// newRecorder returns the recorder of Options.RecordRuns and RecordBytes; nil: nothing is recorded.
func newRecorder[K comparable](runs, bytes int) (*recorder[K], error) {
	switch {
	case runs < 0 && bytes == 0:
		return nil, nil
	case runs < 0:
		return nil, fmt.Errorf("Options.RecordRuns is %d, so that nothing is recorded, and Options.RecordBytes is %d; leave one of them out", runs, bytes)
	case bytes < 0:
		return nil, fmt.Errorf("Options.RecordBytes is %d; give a number above zero, or 0 for %d; to record nothing, set RecordRuns to -1", bytes, defaultRecordBytes)
	case 0 < bytes && bytes < leastRecordBytes:
		return nil, fmt.Errorf("Options.RecordBytes is %d, and one run can take more; give at least %d, or 0 for %d", bytes, leastRecordBytes, defaultRecordBytes)
	}
	r := &recorder[K]{most: cmp.Or(runs, defaultRecordRuns), limit: int64(cmp.Or(bytes, defaultRecordBytes))}
	r.mu.keys = make(map[K]*history[K])
	return r, nil
}

// begin returns an empty record for a run of key; nil: it is not recorded.
func (r *recorder[K]) begin(key K) *record {
	if r == nil || key != key { // a NaN could not be found again
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.mu.unused) - 1
	if last < 0 {
		return new(record)
	}
	rec := r.mu.unused[last]
	r.mu.unused = r.mu.unused[:last]
	return rec
}

// end keeps the record of a run of key that has ended. It returns findings that are new, without the
// key. by are those whose changes the run has undone, as far as they are known.
func (r *recorder[K]) end(key K, rec *record, by rivals) (news []Finding) {
	rec.bytes = rec.size()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return nil
	}
	h := r.mu.keys[key]
	if h == nil {
		h = &history[K]{key: key, own: sizeOfKey(key)}
		r.mu.keys[key] = h
		r.mu.bytes += h.own
		r.appendLocked(h)
	} else {
		r.removeLocked(h)
		r.appendLocked(h)
	}
	if len(h.runs) == r.most {
		r.dropOldestLocked(h)
	}
	r.mu.bytes -= int64(cap(h.runs)) * int64(unsafe.Sizeof(rec))
	h.runs = append(h.runs, rec)
	r.mu.bytes += int64(cap(h.runs))*int64(unsafe.Sizeof(rec)) + rec.bytes
	h.record(rec)
	rec.recognise(h.runs)
	news = r.lookLocked(h, rec, by)
	for r.mu.bytes > r.limit && r.mu.quietest != nil {
		r.evictLocked()
	}
	return news
}

// knowsRival reports whether a Fight of key is found, and with whom.
func (r *recorder[K]) knowsRival(key K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.mu.keys[key]
	return h != nil && slices.ContainsFunc(h.detector.found, func(f Finding) bool { return f.Kind == Fight && f.By != "" })
}

// forget ends the findings of a key that does not run any more.
func (r *recorder[K]) forget(key K) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.mu.keys[key]; h != nil {
		h.failing, h.detector = 0, detector{}
		delete(r.mu.found, h)
	}
}

// lookLocked looks for findings in the runs of h, the last of which is rec.
func (r *recorder[K]) lookLocked(h *history[K], rec *record, by rivals) (news []Finding) {
	failing := time.Time{}
	if h.failing != 0 {
		failing = time.Unix(0, h.failing)
	}
	news = h.detector.look(rec, failing, time.Unix(0, rec.began).Add(rec.took), by, h.pastRuns)
	switch {
	case len(h.detector.found) == 0:
		delete(r.mu.found, h)
	case r.mu.found == nil:
		r.mu.found = map[*history[K]]bool{h: true}
	default:
		r.mu.found[h] = true
	}
	return news
}

// quietFor is after how long without a run the findings of a key have ended.
const quietFor = 10 * time.Minute

// found returns what the recorded runs show without the keys, and the keys. A key that does not run
// any more shows nothing, but for one that is stuck, whose backoff is longer.
func (r *recorder[K]) found(now time.Time) (keys []K, all []Finding) {
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for h := range r.mu.found {
		last := h.runs[len(h.runs)-1]
		quiet := now.Sub(time.Unix(0, last.began).Add(last.took)) > quietFor
		for _, f := range h.detector.found {
			if !quiet || f.Kind == Stuck {
				keys, all = append(keys, h.key), append(all, f)
			}
		}
	}
	return keys, all
}

// record counts a run that has ended.
func (h *history[K]) record(rec *record) {
	h.count++
	switch outcome := outcomes[rec.outcome]; outcome {
	case OutcomeConflict, OutcomeStopped:
	default:
		if outcome.verbosity() > 0 {
			h.failing = 0
		} else if h.failing == 0 {
			h.failing = rec.began + int64(rec.took)
		}
	}
}

// evictLocked drops the run that is to go first.
func (r *recorder[K]) evictLocked() {
	for r.mu.thick != nil && len(r.mu.thick.runs) <= 1 {
		r.mu.thick = r.mu.thick.after
	}
	h := r.mu.thick
	if h == nil {
		h = r.mu.quietest
	}
	r.dropOldestLocked(h)
	if len(h.runs) == 0 {
		r.removeLocked(h)
		delete(r.mu.keys, h.key)
		delete(r.mu.found, h)
		r.mu.bytes -= h.own + int64(cap(h.runs))*int64(unsafe.Sizeof(&record{}))
	}
}

// dropOldestLocked removes the oldest run of h. Its record is used again.
func (r *recorder[K]) dropOldestLocked(h *history[K]) {
	rec := h.runs[0]
	h.runs = slices.Delete(h.runs, 0, 1)
	r.mu.bytes -= rec.bytes
	if rec.reset(); len(r.mu.unused) < mostUnused && rec.bytes <= largestUnused {
		r.mu.unused = append(r.mu.unused, rec)
	}
}

// appendLocked makes h the history that has run last.
func (r *recorder[K]) appendLocked(h *history[K]) {
	if h.before = r.mu.latest; h.before != nil {
		h.before.after = h
	} else {
		r.mu.quietest = h
	}
	if r.mu.latest = h; r.mu.thick == nil {
		r.mu.thick = h
	}
}

// removeLocked removes h from the list.
func (r *recorder[K]) removeLocked(h *history[K]) {
	if r.mu.thick == h {
		r.mu.thick = h.after
	}
	if h.before != nil {
		h.before.after = h.after
	} else {
		r.mu.quietest = h.after
	}
	if h.after != nil {
		h.after.before = h.before
	} else {
		r.mu.latest = h.before
	}
	h.before, h.after = nil, nil
}

// close forgets everything, and records nothing more.
func (r *recorder[K]) close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed = true
	r.mu.keys, r.mu.found, r.mu.unused, r.mu.bytes = nil, nil, nil, 0
	r.mu.quietest, r.mu.latest, r.mu.thick = nil, nil, nil
}

// sizeOfKey returns the memory of an entry of the map, its history, and the texts of the key.
func sizeOfKey[K comparable](key K) int64 {
	n := allocated(unsafe.Sizeof(history[K]{})) + int64(unsafe.Sizeof(key)+unsafe.Sizeof(uintptr(0))+1)*3/2
	switch k := any(key).(type) {
	case Key:
		return n + sizeOfText(k.Namespace) + sizeOfText(k.Name)
	case string:
		return n + sizeOfText(k)
	}
	return n + sizeOfText(keyText(key))
}

// runs returns the runs of key, the newest last.
func (r *recorder[K]) runs(key K) []PastRun {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.mu.keys[key]
	if h == nil {
		return nil
	}
	return h.pastRuns()
}

func (h *history[K]) pastRuns() []PastRun {
	out := make([]PastRun, 0, len(h.runs))
	for _, rec := range h.runs {
		out = append(out, rec.pastRun())
	}
	return out
}

// find returns the key of a text.
func (r *recorder[K]) find(text string) (key K, ok bool) {
	if object, is := any(&key).(*Key); is { // no need to search
		namespace, name, found := strings.Cut(text, "/")
		if !found {
			namespace, name = "", text
		}
		*object = Key{Namespace: namespace, Name: name}
		return key, true
	}
	for _, h := range r.histories() {
		if keyText(h.key) == text {
			return h.key, true
		}
	}
	return key, false
}

// historyOf returns that of a key as in the logs; nil: it has none.
func (r *recorder[K]) historyOf(text string) (of []*history[K]) {
	key, ok := r.find(text)
	if !ok || r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.mu.keys[key]; h != nil {
		of = append(of, h)
	}
	return of
}

// histories returns all histories, the one that has run last first. Only their keys may be read
// without the lock.
func (r *recorder[K]) histories() []*history[K] {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*history[K], 0, len(r.mu.keys))
	for h := r.mu.latest; h != nil; h = h.before {
		all = append(all, h)
	}
	return all
}

// atOnce is how many histories are read under one lock.
const atOnce = 256

// page answers a query. The functions of the query are called without a lock.
func (r *recorder[K]) page(q KeysQuery) KeysPage {
	page := KeysPage{Outcomes: map[Outcome]int{}}
	matching, wanted := []KeyRuns{}, math.MaxInt
	limit := cmp.Or(q.Limit, 100)
	if q.Match == nil && q.Compare == nil && limit > 0 { // those after the page are only counted
		wanted = max(q.Skip, 0) + limit
	}
	all := r.histories
	if q.Key != "" {
		all = func() []*history[K] { return r.historyOf(q.Key) }
	}
	for some := range slices.Chunk(all(), atOnce) {
		sums, bytes := r.sums(some)
		page.Bytes = bytes
		for i := range sums {
			sum := &sums[i]
			if sum.Recorded == 0 {
				continue // it was dropped meanwhile
			}
			if page.Recorded++; page.Matching < wanted {
				sum.Key = keyText(some[i].key)
			}
			if q.Match != nil && !q.Match(*sum) {
				continue
			}
			page.Outcomes[sum.Outcome]++
			if !sum.FailingSince.IsZero() {
				page.Failing++
			}
			if page.Matching++; page.Matching <= wanted {
				matching = append(matching, *sum)
			}
		}
	}
	if q.Compare != nil {
		slices.SortStableFunc(matching, q.Compare)
	}
	matching = matching[min(max(q.Skip, 0), len(matching)):]
	if limit > 0 && limit < len(matching) {
		matching = slices.Clone(matching[:limit])
	}
	page.Keys = matching
	return page
}

// sums returns the sums of some histories, without the keys, and the memory of all.
func (r *recorder[K]) sums(some []*history[K]) (sums []KeyRuns, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sums = make([]KeyRuns, len(some))
	for i, h := range some {
		if last := len(h.runs) - 1; last >= 0 {
			sums[i] = h.sum(h.runs[last])
		}
	}
	return sums, r.mu.bytes
}

func (h *history[K]) sum(last *record) KeyRuns {
	began := time.Unix(0, last.began)
	sum := KeyRuns{
		Runs: h.count, Recorded: len(h.runs), Began: began, Ended: began.Add(last.took),
		Outcome: outcomes[last.outcome], Err: last.textOf(last.err),
	}
	if h.failing != 0 {
		sum.FailingSince = time.Unix(0, h.failing)
	}
	return sum
}
