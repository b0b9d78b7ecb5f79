// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// answerAtOnce is how large an answer is, in bytes, before it is sent in parts,
// and compressed for who takes that.
const answerAtOnce = 128 << 10

// list is a page as one body.
func (e encoder) list(meta metav1.ListMeta, items []*object.Object) ([]byte, error) {
	var body []byte
	err := e.eachPart(meta, items, func(part []byte) error {
		body = append(body, part...)
		return nil
	})
	return body, err
}

// listMeta is meta as the lists of e's kind show it. Those of custom kinds name
// the next page even where there is none.
func (e encoder) listMeta(meta metav1.ListMeta) any {
	if e.kind.builtin || e.as != "" {
		return meta
	}
	return struct {
		Continue           string `json:"continue"`
		RemainingItemCount *int64 `json:"remainingItemCount,omitempty"`
		ResourceVersion    string `json:"resourceVersion"`
	}{meta.Continue, meta.RemainingItemCount, meta.ResourceVersion}
}

// eachPart has send called with a page, part by part. send may not keep them.
func (e encoder) eachPart(meta metav1.ListMeta, items []*object.Object, send func([]byte) error) error {
	e = e.forMany(len(items)+left(meta), func() *object.Object { return items[0] })
	switch {
	case e.as == asMetadata:
		return errNotAcceptable(fmt.Sprintf("you requested %s, but the requested object is a list (%sList)", e.as, e.kind.internalType()))
	case e.as == asTable:
		return whole(send)(e.spelled(e.table(items, meta, true)))
	case e.protobuf:
		return e.messages(meta, items, send)
	case e.yaml || e.pretty:
		plain := e
		plain.yaml, plain.pretty = false, false
		return whole(send)(e.spelled(plain.list(meta, items)))
	}
	kind, version := e.listKind()
	head, err := json.Marshal(struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Metadata   any    `json:"metadata"`
	}{kind, version, e.listMeta(meta)})
	if err != nil {
		return err
	}
	part := append(head[:len(head)-1], `,"items":[`...)
	for i, obj := range items {
		if i > 0 {
			part = append(part, ',')
		}
		if e.kind.builtin || e.as != "" {
			part, err = e.appendContent(part, obj)
		} else {
			part, err = e.appendWithKind(part, obj)
		}
		if err != nil {
			return err
		}
		if len(part) >= answerAtOnce {
			if err := send(part); err != nil {
				return err
			}
			part = part[:0]
		}
	}
	return send(append(part, "]}\n"...))
}

// left is how many objects follow a page, as far as it says.
func left(meta metav1.ListMeta) int {
	if meta.RemainingItemCount == nil {
		return 0
	}
	return int(*meta.RemainingItemCount)
}

func whole(send func([]byte) error) func([]byte, error) error {
	return func(body []byte, err error) error {
		if err != nil {
			return err
		}
		return send(body)
	}
}

// listKind is the kind of a page, and its version.
func (e encoder) listKind() (kind, version string) {
	if e.as != "" {
		return asMetadataList, e.metaVersion()
	}
	return e.kind.listKind, e.kind.GroupVersion().String()
}

// messages has send called with a page in protobuf. The length of the list comes first: what each item takes is known
// before the first is sent. None of them is copied into a whole. A long list does not keep its items until then: those that
// had to be encoded for their size are held compressed.
func (e encoder) messages(meta metav1.ListMeta, items []*object.Object, send func([]byte) error) error {
	head, err := meta.Marshal()
	if err != nil {
		return err
	}
	head = appendField(nil, 1, head)
	contents, sizes, size := make([][]byte, len(items)), make([]int, len(items)), len(head)
	var scratch []byte
	var held heldContents
	for i, obj := range items {
		var anew bool
		if scratch, contents[i], anew, err = e.measured(scratch, obj, &sizes[i]); err != nil {
			return err
		}
		if anew {
			if err := held.add(i, scratch); err != nil {
				return err
			}
		}
		size += fieldSize(sizes[i])
	}
	kind, version := e.listKind()
	before, after, err := envelopeAround(version, kind, size)
	if err != nil {
		return err
	}
	part := append(before, head...)
	for i, obj := range items {
		part = append(part, 2<<3|wireBytes)
		part = binary.AppendUvarint(part, uint64(sizes[i]))
		if contents[i] != nil {
			part = append(part, contents[i]...)
			contents[i] = nil
		} else if part, err = e.appendHeld(part, &held, i, obj, sizes[i]); err != nil {
			return err
		}
		if len(part) >= answerAtOnce {
			if err := send(part); err != nil {
				return err
			}
			part = part[:0]
		}
	}
	return send(append(part, after...))
}

// measured says how long the content of an object is, and returns it unless there are too many to hold them all. Then it is
// encoded into scratch only if its size is not known; anew reports that.
func (e encoder) measured(scratch []byte, obj *object.Object, size *int) (_, content []byte, anew bool, err error) {
	if cache := e.keeps(); e.passing && cache != nil {
		if known := obj.Encoded.Load().In(e.kind, e.form()); known != nil {
			*size = known.Size
			return scratch, nil, false, nil
		}
		scratch, err = e.appendAnew(scratch[:0], obj)
		*size = len(scratch)
		cache.measured(obj, e.kind, e.form(), *size)
		return scratch, nil, true, err
	}
	content, err = e.content(obj)
	*size = len(content)
	return scratch, content, false, err
}

// appendHeld appends the content of the item at an index, held or encoded.
func (e encoder) appendHeld(to []byte, held *heldContents, item int, obj *object.Object, size int) ([]byte, error) {
	if to, ok, err := held.next(to, item, size); ok || err != nil {
		return to, err
	}
	return e.appendContent(to, obj)
}

const (
	// heldAtMost bounds the compressed bytes that a list in protobuf holds until its length is known.
	heldAtMost = 64 << 20
	heldBlock  = 256 << 10
)

// heldContents holds the encoded objects of a list while their lengths are measured, and returns them in the same order.
// They are compressed, because objects of one kind resemble each other: this costs a tenth of encoding an object again,
// which reads maps and strings all over the memory. Objects beyond the bound are encoded twice.
type heldContents struct {
	atMost int // bytes; 0: heldAtMost
	items  []int
	text   bytes.Buffer
	in     *s2.Writer
	out    *s2.Reader
}

// add holds the content of the list's item at an index, if there is room.
func (h *heldContents) add(item int, content []byte) error {
	if h.text.Len() >= cmp.Or(h.atMost, heldAtMost) {
		return nil
	}
	if h.in == nil {
		h.in = s2.NewWriter(&h.text, s2.WriterConcurrency(1), s2.WriterBlockSize(heldBlock))
	}
	h.items = append(h.items, item)
	_, err := h.in.Write(content)
	return err
}

// next appends the content of the item at an index, which has a known size. It is not ok if that is not held.
func (h *heldContents) next(to []byte, item, size int) (_ []byte, ok bool, err error) {
	if len(h.items) == 0 || h.items[0] != item {
		return to, false, nil
	}
	if h.out == nil {
		if err := h.in.Close(); err != nil {
			return to, false, err
		}
		h.out = s2.NewReader(&h.text, s2.ReaderMaxBlockSize(heldBlock))
	}
	h.items = h.items[1:]
	from := len(to)
	to = slices.Grow(to, size)[:from+size]
	_, err = io.ReadFull(h.out, to[from:])
	return to, true, err
}

// parts sends an answer, at once while it is small.
type parts struct {
	http.ResponseWriter
	call *call
	held []byte
	out  io.Writer // nil: nothing is sent yet
	zip  *gzip.Writer
}

func (p *parts) send(part []byte) error {
	if p.out == nil && len(p.held)+len(part) <= answerAtOnce {
		p.held = append(p.held, part...)
		return nil
	}
	if p.out == nil {
		p.begin()
		if _, err := p.out.Write(p.held); err != nil {
			return err
		}
	}
	_, err := p.out.Write(part)
	return err
}

func (p *parts) begin() {
	p.Header().Set("Content-Type", p.call.encoder.contentType())
	p.out = p.ResponseWriter
	if takesGzip(p.call.Request) {
		p.Header().Set("Content-Encoding", "gzip")
		p.Header().Add("Vary", "Accept-Encoding")
		p.zip = p.call.encoder.cache.zipper()
		p.zip.Reset(p.ResponseWriter)
		p.out = p.zip
	}
	p.WriteHeader(http.StatusOK)
}

// end sends what is left. What cannot be sent is for somebody who is gone.
func (p *parts) end() {
	if p.out == nil {
		respond(p.ResponseWriter, p.call.encoder, http.StatusOK, p.held)
		return
	}
	if p.zip != nil {
		_ = p.zip.Close()
		p.call.encoder.cache.zippers.Put(p.zip)
	}
}

func takesGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if name, _, _ := strings.Cut(strings.TrimSpace(coding), ";"); name == "gzip" {
			return true
		}
	}
	return false
}
