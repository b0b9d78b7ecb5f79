// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

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
// before the first is sent. None of them is copied into a whole, and of many not even the items are kept until then.
func (e encoder) messages(meta metav1.ListMeta, items []*object.Object, send func([]byte) error) error {
	head, err := meta.Marshal()
	if err != nil {
		return err
	}
	head = appendField(nil, 1, head)
	contents, sizes, size := make([][]byte, len(items)), make([]int, len(items)), len(head)
	var scratch []byte
	for i, obj := range items {
		if scratch, contents[i], err = e.measured(scratch, obj, &sizes[i]); err != nil {
			return err
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
		} else if part, err = e.appendContent(part, obj); err != nil {
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
// written into scratch only if its size is not known.
func (e encoder) measured(scratch []byte, obj *object.Object, size *int) (_, content []byte, err error) {
	if cache := e.keeps(); e.passing && cache != nil {
		if known := obj.Encoded.Load().In(e.kind, e.form()); known != nil {
			*size = known.Size
			return scratch, nil, nil
		}
		scratch, err = e.appendAnew(scratch[:0], obj)
		*size = len(scratch)
		cache.measured(obj, e.kind, e.form(), *size)
		return scratch, nil, err
	}
	content, err = e.content(obj)
	*size = len(content)
	return scratch, content, err
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
