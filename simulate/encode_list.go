// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answerAtOnce is how large an answer is, in bytes, before it is sent in parts,
// and compressed for who takes that.
const answerAtOnce = 128 << 10

// list is a page as one body.
func (e encoder) list(meta metav1.ListMeta, items []*object) ([]byte, error) {
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
func (e encoder) eachPart(meta metav1.ListMeta, items []*object, send func([]byte) error) error {
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
		content, err := e.content(obj)
		if err != nil {
			return err
		}
		if i > 0 {
			part = append(part, ',')
		}
		if e.kind.builtin || e.as != "" {
			part = append(part, content...)
		} else {
			part = e.withKind(part, content)
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

// messages has send called with a page in protobuf. The length of the list comes first, so its items are made before the first
// is sent; none of them is copied into a whole.
func (e encoder) messages(meta metav1.ListMeta, items []*object, send func([]byte) error) error {
	head, err := meta.Marshal()
	if err != nil {
		return err
	}
	head = appendField(nil, 1, head)
	contents, size := make([][]byte, len(items)), len(head)
	for i, obj := range items {
		if contents[i], err = e.content(obj); err != nil {
			return err
		}
		size += fieldSize(len(contents[i]))
	}
	kind, version := e.listKind()
	before, after, err := envelopeAround(version, kind, size)
	if err != nil {
		return err
	}
	part := append(before, head...)
	for i, content := range contents {
		part = appendField(part, 2, content)
		contents[i] = nil
		if len(part) >= answerAtOnce {
			if err := send(part); err != nil {
				return err
			}
			part = part[:0]
		}
	}
	return send(append(part, after...))
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
