// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// largestBody is how many bytes of a body the server reads.
const largestBody = 3 << 20

// asked returns the write that c asks for, without body and options.
func (c *call) asked() *write.Request {
	return &write.Request{
		Verb: c.verb, User: c.user, Kind: c.kind, Namespace: c.namespace, Name: c.name, Subresource: c.subresource,
		URL: c.URL, Media: mediaOf(c.Header.Get("Content-Type")), Sound: c.sound(),
	}
}

// write reads the body and the options of a request that writes an object of kind.
func (c *call) write(kind *kinds.Kind) (q *write.Request, err error) {
	q = c.asked()
	q.Kind = kind
	if err := q.CheckMedia(); err != nil {
		return nil, err
	}
	if q.Body, err = readBody(c.Body); err != nil {
		return nil, err
	}
	return q, q.ReadOptions(c.URL.Query(), c.UserAgent())
}

// typedWrite reads a request whose body is of a kind that is not stored.
func typedWrite[T any](c *call, gvk schema.GroupVersionKind) (*write.Request, *T, error) {
	q, err := c.write(c.kind)
	if err != nil {
		return nil, nil, err
	}
	typed, err := decode.Typed[T](gvk, q.Media, q.Body)
	return q, typed, err
}

// mediaOf returns a content type without its parameters. Without one it is JSON.
func mediaOf(header string) string {
	if header == "" {
		return encode.ContentJSON
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		media, _, _ = strings.Cut(header, ";")
	}
	return strings.TrimSpace(media)
}

func readBody(r io.Reader) ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r, largestBody+1))
	if err != nil {
		return nil, refusal.Plain(err) // a real server does not distinguish whose fault it is
	}
	if len(body) > largestBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", largestBody))
	}
	return body, nil
}

// write answers create, update and patch of objects.
func (s *Server) write(w http.ResponseWriter, c *call) error {
	q, err := c.write(c.kind)
	if err != nil {
		return err
	}
	obj, created, err := s.writes.Do(c.Context(), q)
	if err != nil {
		sendWarnings(w, q)
		return err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return s.answerObject(w, c, q, code, obj)
}

// answerObject sends an object that a write led to.
func (s *Server) answerObject(w http.ResponseWriter, c *call, q *write.Request, code int, obj *object.Object) error {
	body, err := c.encoder.Object(obj)
	if err != nil {
		return err
	}
	return s.answer(w, c, q, code, body)
}

// answerTyped sends an object of a kind that is not stored.
func (s *Server) answerTyped(w http.ResponseWriter, c *call, q *write.Request, code int, gvk schema.GroupVersionKind, typed runtime.Object) error {
	kind := kinds.Kind{GroupVersionKind: gvk}.Completed()
	obj, err := kinds.ObjectOfTyped(kind, typed)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	c.encoder = encode.For(kind, c.Header.Get("Accept"))
	return s.answerObject(w, c, q, code, obj)
}

// answerDone sends a Status that says that something was created.
func (s *Server) answerDone(w http.ResponseWriter, c *call, q *write.Request) error {
	body, err := c.encoder.Status(metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
	if err != nil {
		return err
	}
	return s.answer(w, c, q, http.StatusCreated, body)
}

// answer sends the answer to a write once the journal has it, unless a fault loses it.
func (s *Server) answer(w http.ResponseWriter, c *call, q *write.Request, code int, body []byte) error {
	if err := s.store.Kept(c.Context()); err != nil {
		return err
	}
	if s.tracer != nil {
		s.tracer.Answering(c.traced)
	}
	if !c.sound() && s.losesResponse(c.request(c.traced.Number)) {
		panic(http.ErrAbortHandler)
	}
	sendWarnings(w, q)
	encode.Respond(w, c.encoder, code, body)
	return nil
}

// sendWarnings puts the warnings of a write into the header of its answer.
func sendWarnings(w http.ResponseWriter, q *write.Request) {
	for _, text := range q.Warnings {
		warn(w, text)
	}
}

func warn(w http.ResponseWriter, text string) {
	if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
		w.Header().Add("Warning", header)
	}
}
