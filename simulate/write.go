// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/fieldmanager"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// writing is one request that changes something, on its way.
type writing struct {
	*call
	media      string // of the body
	body       []byte
	dryRun     bool
	manager    string // who is said to own what is written
	named      bool   // the manager was given, not taken from the client's name
	force      bool
	validation string // Ignore, Warn or Strict
	warnings   []string
	deleting   *metav1.DeleteOptions // of a DELETE
}

// writer is who writes what q asks for.
func (q *writing) writer() fieldmanager.Writer {
	return fieldmanager.Writer{Kind: q.kind, Subresource: q.subresource, Manager: q.manager, Force: q.force}
}

// own notes in obj who has written what of it since old; nil: all of it.
func (q *writing) own(old, obj *object.Object) error { return q.writer().Own(old, obj) }

// write answers create, update and patch of objects.
//
//	body ─▶ decode or patch ─▶ managed fields ─▶ admission ─▶ prepare ─▶ validate ─▶ admission ─▶ store
func (s *Server) write(w http.ResponseWriter, c *call) error {
	q, err := c.writing()
	if err != nil {
		return err
	}
	obj, code, err := s.store(q)
	if err != nil {
		q.sendWarnings(w)
		return err
	}
	answer, err := c.encoder.Object(obj)
	if err != nil {
		return err
	}
	return s.answer(w, q, code, answer)
}

// store does what q asks for, and returns what it answers.
func (s *Server) store(q *writing) (obj *object.Object, code int, err error) {
	code = http.StatusOK
	created := false
	switch q.verb {
	case "create":
		created = true
		obj, err = s.create(q)
	case "update":
		obj, created, err = s.update(q)
	case "patch":
		obj, created, err = s.patch(q)
	}
	if created {
		code = http.StatusCreated
	}
	return obj, code, err
}

// answer sends what a write led to when it is kept, unless that is to be lost.
func (s *Server) answer(w http.ResponseWriter, q *writing, code int, body []byte) error {
	if err := s.kept(q.Context()); err != nil {
		return err
	}
	if s.tracer != nil {
		s.tracer.Answering(q.traced)
	}
	if !q.sound() && s.losesResponse(q.request(q.traced.Number)) {
		panic(http.ErrAbortHandler)
	}
	q.sendWarnings(w)
	encode.Respond(w, q.encoder, code, body)
	return nil
}

// warn tells the client something, once. What a YAML reader says is a heading
// and a line for each fault.
func (q *writing) warn(text string) {
	if faults, ok := strings.CutPrefix(text, "yaml: unmarshal errors:\n"); ok {
		for fault := range strings.Lines(faults) {
			q.warn(strings.TrimSpace(fault))
		}
		return
	}
	for _, known := range q.warnings {
		if known == text {
			return
		}
	}
	q.warnings = append(q.warnings, text)
}

// sendWarnings puts the warnings into the header of an answer.
func (q *writing) sendWarnings(w http.ResponseWriter) {
	for _, text := range q.warnings {
		warn(w, text)
	}
}

func warn(w http.ResponseWriter, text string) {
	if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
		w.Header().Add("Warning", header)
	}
}
