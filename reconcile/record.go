// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/fielddiff"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
)

// The texts of a record fit into 64 KiB, see span.
const (
	mostRequests = 32
	longestPath  = 512 // bytes
	longestKind  = 64
)

// Effects of a write, see Request.
const (
	effectNothing = "nothing"
	effectChanged = "changed"
	effectCreated = "created"
	effectDeleted = "deleted"
)

// record is a run as the recorder keeps it: in one piece where possible, so that its memory is
// known and can be used again.
type record struct {
	requests     []request
	text         []byte // of the spans
	bytes        int64  // of the record, from its end on
	more         uint32 // requests
	outcome      uint8  // its place in outcomes
	caused       bool
	reason, err  span
	id           uint64
	began        int64 // nanoseconds since 1970
	waited, took time.Duration
	after        time.Duration
	merged       *moreCauses // nil: there is one cause, or none
	first        source.Cause
}

// span is a part of a record's text.
type span struct{ at, length uint16 }

// request is a Request in a record.
type request struct {
	path, kind     span // of the URL, as in contextvalues.Request
	fields         span // joined by line ends
	moreFields     uint16
	code           uint16
	verb, effect   uint8        // their places in verbs and knownEffects
	version        kube.Version // that the write has left; 0: not known
	ended          bool
	sent           time.Duration // since the record began
	took           time.Duration
	wrote, hasRead int64 // bytes
}

var (
	verbs = [...]string{
		"", "get", "list", "watch", "create", "update", "patch", "apply", "delete", "deletecollection",
		"head", "post", "put", "options",
	}
	knownEffects = [...]string{"", effectNothing, effectChanged, effectCreated, effectDeleted}
)

// reset makes r ready for another run. What setCauses and setEnd set stays until then.
func (r *record) reset() { r.requests, r.text, r.more = r.requests[:0], r.text[:0], 0 }

// put adds a text.
func (r *record) put(text string) span {
	at := len(r.text)
	r.text = append(r.text, text...)
	return span{uint16(at), uint16(len(text))}
}

func (r *record) textOf(s span) string { return string(r.text[s.at : int(s.at)+int(s.length)]) }

// cut returns the first bytes of a text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// add records a request that is sent, and returns its number; negative: there is no room.
func (r *record) add(q contextvalues.Request, after time.Duration) (number int) {
	if len(r.requests) >= mostRequests {
		r.more++
		return -1
	}
	r.requests = append(r.requests, request{
		path: r.put(cut(q.Path, longestPath)), kind: r.put(cut(q.Kind, longestKind)),
		verb: uint8(max(slices.Index(verbs[:], q.Verb), 0)), sent: after, wrote: q.Bytes,
	})
	return len(r.requests) - 1
}

// answer records the answer so far to a request.
func (r *record) answer(number int, a contextvalues.Answer, after time.Duration) {
	q := &r.requests[number]
	q.code, q.hasRead, q.took, q.ended = uint16(a.Code), a.Bytes, after-q.sent, a.Ended
}

// affect records the effect of a request. kind is that of the object.
func (r *record) affect(number int, did kube.Written, effect string, changed fielddiff.Fields) {
	q, kind := &r.requests[number], did.Kind.Kind
	q.version = did.Version
	q.effect = uint8(slices.Index(knownEffects[:], effect))
	if q.kind.length == 0 {
		q.kind = r.put(cut(kind, longestKind))
	}
	q.fields = r.put(strings.Join(changed.Paths, "\n"))
	q.moreFields = uint16(min(changed.More, 1<<16-1))
}

// setCauses records why the run began, at a time.
func (r *record) setCauses(why Causes, began time.Time) {
	r.began, r.caused, r.first, r.merged, r.waited = began.UnixNano(), why.Count > 0, why.First, nil, 0
	r.first.TraceContext = "" // it is a value
	if r.caused {
		r.waited = began.Sub(why.Since)
	}
	if why.Count > 1 {
		r.merged = &moreCauses{last: why.Last, count: why.Count, foreign: why.foreign, sources: why.Sources}
		r.merged.last.TraceContext = ""
	}
}

// setEnd records the result.
func (r *record) setEnd(a action, reason, err string, took time.Duration) {
	r.took, r.after, r.outcome = took, a.after, uint8(slices.Index(outcomes[:], a.outcome))
	r.reason, r.err = r.put(cut(reason, mostReason)), r.put(cut(err, longestFailure))
	for i := range r.requests {
		if q := &r.requests[i]; !q.ended {
			q.took = took - q.sent
		}
	}
}

// size returns the memory of r.
func (r *record) size() int64 {
	n := allocated(unsafe.Sizeof(*r)) + int64(cap(r.requests))*int64(unsafe.Sizeof(request{})) + int64(cap(r.text)) + sizeOfCause(&r.first)
	if r.merged != nil {
		n += allocated(unsafe.Sizeof(*r.merged)) + sizeOfCause(&r.merged.last) + int64(cap(r.merged.sources))*int64(unsafe.Sizeof(SourceCount{}))
	}
	return n
}

// sizeOfCause returns the memory of the texts that a cause has for itself. The names of sources and
// kinds are those of all causes.
func sizeOfCause(c *source.Cause) int64 {
	n := sizeOfText(c.Object.Namespace) + sizeOfText(c.Object.Name) + sizeOfText(c.Reason)
	if changed, _ := c.Changed(); changed != nil {
		n += allocated(unsafe.Sizeof(fielddiff.Fields{})) + int64(cap(changed))*int64(unsafe.Sizeof(""))
		for _, path := range changed {
			n += sizeOfText(path)
		}
	}
	return n
}

func sizeOfText(s string) int64 {
	if s == "" {
		return 0
	}
	return allocated(uintptr(len(s)))
}

// allocated returns about how much Go allocates for an object of n bytes.
func allocated(n uintptr) int64 {
	step := uintptr(16)
	if n > 256 {
		step = 32
	}
	return int64((n + step - 1) / step * step)
}

// pastRun returns r for a reader.
func (r *record) pastRun() PastRun {
	out := PastRun{
		ID: strconv.FormatUint(r.id, 16), Began: time.Unix(0, r.began), Waited: r.waited, Took: r.took,
		Outcome: outcomes[r.outcome], After: r.after, Reason: r.textOf(r.reason), Err: r.textOf(r.err),
		MoreRequests: int(r.more),
	}
	if r.caused {
		out.Causes = Causes{First: r.first, Last: r.first, Count: 1, Since: out.Began.Add(-r.waited)}
	}
	if m := r.merged; m != nil {
		out.Causes.Last, out.Causes.Count, out.Causes.Sources, out.Causes.foreign = m.last, m.count, slices.Clone(m.sources), m.foreign
	}
	for i := range r.requests {
		out.Requests = append(out.Requests, r.sentRequest(&r.requests[i], out.Began))
	}
	return out
}

func (r *record) sentRequest(q *request, began time.Time) Request {
	out := Request{
		Verb: verbs[q.verb], Kind: r.textOf(q.kind), Sent: began.Add(q.sent), Took: q.took, Code: int(q.code),
		BytesSent: q.wrote, BytesReceived: q.hasRead, Effect: knownEffects[q.effect], MoreFields: int(q.moreFields),
	}
	path := r.textOf(q.path)
	if to, ok := effects.Parse(path, ""); ok {
		out.Resource, out.Subresource, out.Key = to.Resource.GroupResource(), to.Subresource, to.Key
	} else {
		out.Path = path
	}
	if q.fields.length > 0 {
		out.Fields = strings.Split(r.textOf(q.fields), "\n")
	}
	return out
}
