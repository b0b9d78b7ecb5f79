// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/faults"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/read"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// read returns the target of a read.
func (c *Call) read() read.Request {
	return read.Request{Kind: c.Kind, Namespace: c.Namespace, Name: c.Name, Sound: c.Sound}
}

// query reads the query of a list, a watch or a deletion of a collection.
func (h *Handler) query(c *Call) (*read.Query, error) {
	q, err := read.Parse(read.Target{Kind: c.Kind, Namespace: c.Namespace, Name: c.Name, NoStreams: h.RefusesStreams(c)},
		c.URL.Query(), c.Verb == "watch")
	if err != nil || h.IgnoresShards(c) {
		return q, err
	}
	return q, q.SelectShard()
}

// find returns the object that a Call addresses.
func (h *Handler) find(c *Call) (*object.Object, error) {
	return h.Reads.Get(c.Context(), c.read(), 0)
}

// selected returns the objects that the query of a Call selects.
func (h *Handler) selected(c *Call) ([]*object.Object, metav1.ListMeta, error) {
	query, err := h.query(c)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	page, err := query.Page()
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	return h.Reads.List(c.Context(), c.read(), page, query.Selection())
}

// get answers a get of an object.
func (h *Handler) get(w http.ResponseWriter, c *Call) error {
	revision, err := read.ParseRevision(c.URL.Query().Get("resourceVersion"))
	if err != nil {
		return err
	}
	obj, err := h.Reads.Get(c.Context(), c.read(), revision)
	if err == nil {
		err = h.Kept(c.Context())
	}
	if err != nil {
		return err
	}
	body, err := c.Encoder.Object(obj)
	if err != nil {
		return err
	}
	encode.Respond(w, c.Encoder, http.StatusOK, body)
	return nil
}

// list answers a list, in parts.
func (h *Handler) list(w http.ResponseWriter, c *Call) error {
	objects, meta, err := h.selected(c)
	if err != nil {
		return err
	}
	if err := h.Kept(c.Context()); err != nil {
		return err
	}
	if damage := h.Damage(c); damage != "" {
		body, err := c.Encoder.List(meta, objects)
		if err == nil {
			damage.Answer(w, c.Encoder, body)
		}
		return err
	}
	out := &encode.Parts{ResponseWriter: w, Encoder: c.Encoder, Request: c.Request}
	if err := c.Encoder.EachPart(meta, objects, out.Send); err != nil {
		if out.Out != nil {
			panic(http.ErrAbortHandler) // a part was sent
		}
		return err
	}
	out.End()
	return nil
}

// watch answers a watch until it ends.
func (h *Handler) watch(w http.ResponseWriter, c *Call) error {
	query, err := h.query(c)
	if err != nil {
		return err
	}
	asked, err := query.Watch()
	if err != nil {
		return err
	}
	if damage := h.Damage(c); damage == faults.OtherPage {
		damage.Answer(w, c.Encoder, nil)
		return nil
	}
	// The watch is open before its client has the header: it counts on what happens after that.
	watch := h.Reads.Watch(c.Context(), c.read(), asked, query.Selection())
	defer watch.Close()
	w.Header().Set("Content-Type", c.Encoder.StreamType())
	w.WriteHeader(http.StatusOK)
	flush(w)
	s := &stream{handler: h, answer: w, call: c}
	for {
		events, over := watch.Next(c.Context())
		if !s.send(events) || over {
			return nil
		}
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// stream sends the events of a watch.
type stream struct {
	handler *Handler
	answer  http.ResponseWriter
	call    *Call
	begun   bool // an event was encoded
}

// send sends events and reports whether the watch continues.
func (s *stream) send(events []revisions.Event) bool {
	encoder, line := s.call.Encoder, []byte(nil)
	if len(events) > 0 && events[0].Type != revisions.Failed {
		encoder = encoder.ForMany(len(events), func() *object.Object { return events[0].Object })
	}
	for _, e := range events {
		raw, err := encoder.Event(line[:0], e, !s.begun)
		if err != nil {
			status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: fmt.Sprint(err)}
			raw, err = encoder.Event(line[:0], revisions.Event{Type: revisions.Failed, Status: &status}, !s.begun)
		}
		if err != nil {
			return false
		}
		line, s.begun = raw, true
		if damage := s.handler.Sending(s.call, e); damage != "" {
			if !damage.Event(s.answer, encoder, raw) {
				return false
			}
			continue
		}
		if _, err := s.answer.Write(raw); err != nil {
			return false
		}
		flush(s.answer)
	}
	return true
}
