// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
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
		Continue           string            `json:"continue"`
		RemainingItemCount *int64            `json:"remainingItemCount,omitempty"`
		ResourceVersion    string            `json:"resourceVersion"`
		ShardInfo          *metav1.ShardInfo `json:"shardInfo,omitempty"`
	}{meta.Continue, meta.RemainingItemCount, meta.ResourceVersion, meta.ShardInfo}
}

// EachPart calls send with a page, part by part. send must not retain them.
func (e Encoder) EachPart(meta metav1.ListMeta, items []*object.Object, send func([]byte) error) error {
	e = e.ForMany(len(items)+left(meta), func() *object.Object { return items[0] })
	switch {
	case e.as == asMetadata:
		return errNotAcceptable(fmt.Sprintf("you requested %s, but the requested object is a list (%sList)", e.as, internalType(e.kind)))
	case e.as == AsTable:
		meta.ShardInfo = nil // which tables do not have
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
// buffer.
func (e Encoder) messages(meta metav1.ListMeta, items []*object.Object, send func([]byte) error) error {
	head, err := meta.Marshal()
	if err != nil {
		return err
	}
	head = wire.AppendField(nil, 1, head)
	list, err := e.measure(items)
	if err != nil {
		return err
	}
	kind, version := e.listKind()
	before, after, err := wire.EnvelopeAround(version, kind, len(head)+list.size)
	if err != nil {
		return err
	}
	part := append(before, head...)
	for i := range items {
		part = append(part, 2<<3|wire.WireBytes)
		part = binary.AppendUvarint(part, uint64(list.sizes[i]))
		if part, err = list.appendItem(part, i); err != nil {
			return err
		}
		if len(part) >= AnswerAtOnce {
			if err := send(part); err != nil {
				return err
			}
			part = part[:0]
		}
	}
	if err := send(append(part, after...)); err != nil {
		return err
	}
	return list.end()
}

// measured is a page in protobuf whose length is known.
type measured struct {
	Encoder
	items    []*object.Object
	sizes    []int
	size     int      // of all items, with the length of each
	contents [][]byte // nil for a long list

	// A long list does not retain its items: what was encoded to measure them is held
	// compressed, and kept for the next list of the kind.
	encodings    []*object.Encoding
	fresh, older heldReader
	keep         *heldList   // instead of the older; nil: none
	next         *heldWriter // what becomes keep; nil: nothing
}

// measure returns a page with the size of each item.
func (e Encoder) measure(items []*object.Object) (*measured, error) {
	m := &measured{Encoder: e, items: items, sizes: make([]int, len(items))}
	if cache := e.keeps(); e.passing && cache != nil {
		if err := m.hold(cache); err != nil {
			return nil, err
		}
	} else {
		m.contents = make([][]byte, len(items))
		for i, obj := range items {
			content, err := e.content(obj)
			if err != nil {
				return nil, err
			}
			m.contents[i], m.sizes[i] = content, len(content)
		}
	}
	for _, size := range m.sizes {
		m.size += wire.FieldSize(size)
	}
	return m, nil
}

// hold measures the items of a long list. It encodes those whose size is unknown, and holds
// them.
func (m *measured) hold(cache *Cache) error {
	m.encodings = make([]*object.Encoding, len(m.items))
	m.older.list = cache.heldFor(m.kind, m.form())
	var anew heldWriter
	var scratch []byte
	var err error
	lacking, size := 0, 0
	for i, obj := range m.items {
		known := obj.Encoded.Load().In(m.kind, m.form())
		if known == nil {
			if scratch, err = m.appendAnew(scratch[:0], obj); err != nil {
				return err
			}
			known = cache.measured(obj, m.kind, m.form(), len(scratch))
			if err := anew.add(known, scratch); err != nil {
				return err
			}
		}
		m.encodings[i], m.sizes[i] = known, known.Size
		size += known.Size
		if _, held := m.older.list.place(known); !held {
			lacking++
		}
	}
	m.fresh.list, err = anew.end()
	switch {
	case lacking*heldRenewed <= len(m.items):
	case size <= cache.bound()/2: // a page of a long list
	case m.fresh.list.len() == len(m.items):
		m.keep = m.fresh.list
	default:
		m.next = &heldWriter{}
	}
	return err
}

// appendItem appends the content of an item.
func (m *measured) appendItem(to []byte, i int) ([]byte, error) {
	if m.contents != nil {
		to = append(to, m.contents[i]...)
		m.contents[i] = nil
		return to, nil
	}
	from, known, size := len(to), m.encodings[i], m.sizes[i]
	to, ok, err := m.fresh.append(to, known, size)
	if !ok && err == nil {
		to, ok, err = m.older.append(to, known, size)
	}
	if !ok && err == nil {
		to, err = m.appendContent(to, m.items[i])
	}
	if m.next != nil && err == nil {
		err = m.next.add(known, to[from:])
	}
	return to, err
}

// end keeps what is held for the next list of the kind, if it differs much from what the
// previous one left.
func (m *measured) end() (err error) {
	if m.next != nil {
		if m.keep, err = m.next.end(); err != nil {
			return err
		}
	}
	if m.keep != nil {
		m.keep.kind, m.keep.form = m.kind, m.form()
		m.Cache.list.Store(m.keep)
	}
	return nil
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

// WriteNegotiated answers with a message in the form that r asks for.
func WriteNegotiated(w http.ResponseWriter, r *http.Request, kind, apiVersion string, m message) {
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
