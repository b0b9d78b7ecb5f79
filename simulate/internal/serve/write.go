// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 a server takes what old clients send

package serve

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

	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// maxBody is how many bytes of a body the server reads.
const maxBody = 3 << 20

// asked returns the write that c asks for, without body and options.
func (c *Call) asked() *write.Request {
	return &write.Request{
		Verb: c.Verb, User: c.User, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name, Subresource: c.Subresource,
		URL: c.URL, Media: mediaOf(c.Header.Get("Content-Type")), Sound: c.Sound,
	}
}

// write reads the body and the options of a request that writes an object of kind.
func (c *Call) write(kind *kinds.Kind) (q *write.Request, err error) {
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
func typedWrite[T any](c *Call, gvk schema.GroupVersionKind) (*write.Request, *T, error) {
	q, err := c.write(c.Kind)
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
	body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err != nil {
		return nil, refusal.Plain(err) // a real server does not distinguish whose fault it is
	}
	if len(body) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return body, nil
}

// write answers create, update and patch of objects.
func (h *Handler) write(w http.ResponseWriter, c *Call) error {
	q, err := c.write(c.Kind)
	if err != nil {
		return err
	}
	obj, created, err := h.Writes.Do(c.Context(), q)
	if err != nil {
		sendWarnings(w, q)
		return err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return h.answerObject(w, c, q, code, obj)
}

// answerObject sends an object that a write led to.
func (h *Handler) answerObject(w http.ResponseWriter, c *Call, q *write.Request, code int, obj *object.Object) error {
	body, err := c.Encoder.Object(obj)
	if err != nil {
		return err
	}
	return h.answer(w, c, q, code, body)
}

// answerTyped sends an object of a kind that is not stored.
func (h *Handler) answerTyped(w http.ResponseWriter, c *Call, q *write.Request, code int, gvk schema.GroupVersionKind, typed runtime.Object) error {
	kind := kinds.Kind{GroupVersionKind: gvk}.Completed()
	obj, err := kinds.ObjectOfTyped(kind, typed)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	c.Encoder = encode.For(kind, c.Header.Get("Accept"))
	return h.answerObject(w, c, q, code, obj)
}

// answerDone sends a Status that says that something was created.
func (h *Handler) answerDone(w http.ResponseWriter, c *Call, q *write.Request) error {
	body, err := c.Encoder.Status(metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
	if err != nil {
		return err
	}
	return h.answer(w, c, q, http.StatusCreated, body)
}

// answer sends the answer to a write once it is kept, unless a fault loses it.
func (h *Handler) answer(w http.ResponseWriter, c *Call, q *write.Request, code int, body []byte) error {
	if err := h.Kept(c.Context()); err != nil {
		return err
	}
	if h.Lost(c) {
		panic(http.ErrAbortHandler)
	}
	sendWarnings(w, q)
	encode.Respond(w, c.Encoder, code, body)
	return nil
}

// sendWarnings puts the warnings of a write into the header of its answer.
func sendWarnings(w http.ResponseWriter, q *write.Request) {
	for _, text := range q.Warnings {
		warn(w, text)
	}
}

// deletion reads the options of a DELETE.
func (c *Call) deletion() (q *write.Request, opts metav1.DeleteOptions, err error) {
	body, err := readBody(c.Body)
	if err != nil {
		return nil, opts, err
	}
	q = c.asked()
	opts, err = decode.DeleteOptions(q.Media, body, c.URL.Query())
	q.DryRun = len(opts.DryRun) > 0
	return q, opts, err
}

// deleteOne answers a DELETE of one object.
func (h *Handler) deleteOne(w http.ResponseWriter, c *Call) error {
	q, opts, err := c.deletion()
	if err != nil {
		return err
	}
	if c.Kind.GroupResource().String() == "jobs.batch" && opts.PropagationPolicy == nil && opts.OrphanDependents == nil {
		q.Warn("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning")
	}
	obj, removed, err := h.Writes.Delete(c.Context(), q, &opts)
	if err != nil {
		sendWarnings(w, q)
		return err
	}
	code := http.StatusOK
	if !removed && opts.OrphanDependents != nil && !*opts.OrphanDependents {
		code = http.StatusAccepted
	}
	if !removed || c.Kind.AnswersDeleted() {
		return h.answerObject(w, c, q, code, obj)
	}
	answer, err := c.Encoder.Status(metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name: c.Name, Group: c.Kind.Group, Kind: c.Kind.Resource, UID: obj.Meta().GetUID(),
	}})
	if err != nil {
		return err
	}
	return h.answer(w, c, q, code, answer)
}

// deleteCollection answers a DELETE of all objects that are selected: each is deleted as if
// it were requested alone, and the answer is the list of them.
func (h *Handler) deleteCollection(w http.ResponseWriter, c *Call) error {
	q, opts, err := c.deletion()
	if err != nil {
		return err
	}
	objects, meta, err := h.selected(c)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		key := obj.Key()
		each := c.asked()
		each.Namespace, each.Name, each.DryRun = key.Namespace, key.Name, q.DryRun
		if _, _, err := h.Writes.Delete(c.Context(), each, &opts); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s: %w", c.Kind.Resource, key, err)
		}
	}
	answer, err := c.Encoder.List(meta, objects)
	if err != nil {
		return err
	}
	return h.answer(w, c, q, http.StatusOK, answer)
}
