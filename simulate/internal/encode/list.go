// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

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
	"github.com/flyball-dev/flyball/simulate/internal/wire"
)

// AnswerAtOnce is the size in bytes up to which an answer is sent at once and uncompressed.
const AnswerAtOnce = 128 << 10

// List returns a page as one body.
func (e Encoder) List(meta metav1.ListMeta, items []*object.Object) ([]byte, error) {
	var body []byte
	err := e.EachPart(meta, items, func(part []byte) error {
		body = append(body, part...)
		return nil
	})
	return body, err
}

// listMeta returns meta as lists of e's kind show it. Lists of custom kinds have the
// continue field even where there is no next page.
func (e Encoder) listMeta(meta metav1.ListMeta) any {
	if e.kind.Builtin || e.as != "" {
		return meta
	}
	return struct {
		Continue           string `json:"continue"`
		RemainingItemCount *int64 `json:"remainingItemCount,omitempty"`
		ResourceVersion    string `json:"resourceVersion"`
	}{meta.Continue, meta.RemainingItemCount, meta.ResourceVersion}
}

// EachPart calls send with a page, part by part. send must not retain them.
func (e Encoder) EachPart(meta metav1.ListMeta, items []*object.Object, send func([]byte) error) error {
	e = e.ForMany(len(items)+left(meta), func() *object.Object { return items[0] })
	switch {
	case e.as == asMetadata:
		return errNotAcceptable(fmt.Sprintf("you requested %s, but the requested object is a list (%sList)", e.as, internalType(e.kind)))
	case e.as == AsTable:
		return whole(send)(e.spelled(e.table(items, meta, true)))
	case e.Protobuf:
		return e.messages(meta, items, send)
	case e.yaml || e.Pretty:
		plain := e
		plain.yaml, plain.Pretty = false, false
		return whole(send)(e.spelled(plain.List(meta, items)))
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
		if e.kind.Builtin || e.as != "" {
			part, err = e.appendContent(part, obj)
		} else {
			part, err = e.appendWithKind(part, obj)
		}
		if err != nil {
			return err
		}
		if len(part) >= AnswerAtOnce {
			if err := send(part); err != nil {
				return err
			}
			part = part[:0]
		}
	}
	return send(append(part, "]}\n"...))
}

// left returns the number of objects that follow a page, as far as it is known.
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

// listKind returns the kind of a page and its version.
func (e Encoder) listKind() (kind, version string) {
	if e.as != "" {
		return asMetadataList, e.metaVersion()
	}
	return e.kind.ListKind, e.kind.GroupVersion().String()
}

// messages calls send with a page in protobuf. The length of the list comes first, so the
// size of each item must be known before the first is sent. Items are not copied into one
// buffer. A long list does not retain its items until then: those that had to be encoded to
// measure them are held compressed.
func (e Encoder) messages(meta metav1.ListMeta, items []*object.Object, send func([]byte) error) error {
	head, err := meta.Marshal()
	if err != nil {
		return err
	}
	head = wire.AppendField(nil, 1, head)
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
		size += wire.FieldSize(sizes[i])
	}
	kind, version := e.listKind()
	before, after, err := wire.EnvelopeAround(version, kind, size)
	if err != nil {
		return err
	}
	part := append(before, head...)
	for i, obj := range items {
		part = append(part, 2<<3|wire.WireBytes)
		part = binary.AppendUvarint(part, uint64(sizes[i]))
		if contents[i] != nil {
			part = append(part, contents[i]...)
			contents[i] = nil
		} else if part, err = e.appendHeld(part, &held, i, obj, sizes[i]); err != nil {
			return err
		}
		if len(part) >= AnswerAtOnce {
			if err := send(part); err != nil {
				return err
			}
			part = part[:0]
		}
	}
	return send(append(part, after...))
}

// measured stores the length of an object's content in size, and returns the content unless
// there are too many to hold them all. In that case it encodes into scratch only if the
// size is unknown, and anew reports that.
func (e Encoder) measured(scratch []byte, obj *object.Object, size *int) (_, content []byte, anew bool, err error) {
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
func (e Encoder) appendHeld(to []byte, held *heldContents, item int, obj *object.Object, size int) ([]byte, error) {
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

// heldContents holds the encoded objects of a list while their lengths are measured, and
// returns them in the same order. They are compressed, because objects of one kind resemble
// each other: this costs a tenth of encoding an object again, which reads maps and strings
// all over memory. Objects beyond the bound are encoded twice.
type heldContents struct {
	atMost int // bytes; 0: heldAtMost
	items  []int
	text   bytes.Buffer
	in     *s2.Writer
	out    *s2.Reader
}

// add holds the content of the item at an index if there is room.
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

// next appends the content of the item at an index, which has a known size. ok is false if
// the content is not held.
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

// Parts sends an answer, at once as long as it is small.
type Parts struct {
	http.ResponseWriter
	Encoder Encoder
	Request *http.Request
	held    []byte
	Out     io.Writer // nil: nothing has been sent
	zip     *gzip.Writer
}

func (p *Parts) Send(part []byte) error {
	if p.Out == nil && len(p.held)+len(part) <= AnswerAtOnce {
		p.held = append(p.held, part...)
		return nil
	}
	if p.Out == nil {
		p.begin()
		if _, err := p.Out.Write(p.held); err != nil {
			return err
		}
	}
	_, err := p.Out.Write(part)
	return err
}

func (p *Parts) begin() {
	p.Header().Set("Content-Type", p.Encoder.ContentType())
	p.Out = p.ResponseWriter
	if takesGzip(p.Request) {
		p.Header().Set("Content-Encoding", "gzip")
		p.Header().Add("Vary", "Accept-Encoding")
		p.zip = p.Encoder.Cache.zipper()
		p.zip.Reset(p.ResponseWriter)
		p.Out = p.zip
	}
	p.WriteHeader(http.StatusOK)
}

// End sends the rest. It ignores errors: the client is gone.
func (p *Parts) End() {
	if p.Out == nil {
		Respond(p.ResponseWriter, p.Encoder, http.StatusOK, p.held)
		return
	}
	if p.zip != nil {
		_ = p.zip.Close()
		p.Encoder.Cache.zippers.Put(p.zip)
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

// message is a value that has a protobuf form too.
type message interface{ Marshal() ([]byte, error) }

// Tell answers with a message in the form that r asks for.
func Tell(w http.ResponseWriter, r *http.Request, kind, apiVersion string, m message) {
	e := For(nil, r.Header.Get("Accept"))
	if e.unacceptable {
		Refuse(w, e, errAccepted(media...))
		return
	}
	body, err := Spell(e.Protobuf, kind, apiVersion, m)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	Respond(w, e, http.StatusOK, body)
}

func Spell(protobuf bool, kind, apiVersion string, m message) ([]byte, error) {
	if !protobuf {
		return json.Marshal(m)
	}
	raw, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	return wire.Envelope(apiVersion, kind, raw)
}
