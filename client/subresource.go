// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
)

// SubResource reads and writes one subresource of objects. It is a view of its Client
// and safe for concurrent use.
type SubResource struct {
	client *Client
	name   string
}

// Status returns the status subresource. A write to it changes only the status.
func (c *Client) Status() *SubResource { return c.SubResource("status") }

// SubResource returns the subresource with this name in the path: scale, eviction,
// resize.
func (c *Client) SubResource(name string) *SubResource {
	return &SubResource{client: c, name: name}
}

func (s *SubResource) check(v verb, obj any) error {
	if s.name == "" || strings.ContainsAny(s.name, "/%?#") {
		return fmt.Errorf("%s subresource %q of %T: not the name of a subresource, such as status or scale", v, s.name, obj)
	}
	return nil
}

// Get reads the subresource of the object that obj names and stores it in into. obj is
// not modified. The type of into is that of the subresource's content, such as
// *autoscalingv1.Scale for scale.
func (s *SubResource) Get(ctx context.Context, obj, into kube.Object, opts ...Option) error {
	if err := s.check(verbGet, obj); err != nil {
		return err
	}
	c := s.client
	at, err := c.newCall(ctx, verbGet, s.name, obj, opts)
	if err != nil {
		return err
	}
	if isNil(into) {
		return at.wrap(errors.New("the object to read into is nil"))
	}
	if err := c.private(at, into); err != nil {
		return err
	}
	req, err := c.request(at, http.MethodGet)
	if err != nil {
		return at.wrap(err)
	}
	a, err := c.do(ctx, at, req.SetHeader("Accept", acceptJSON))
	if err != nil {
		return err
	}
	return at.wrap(contentOf(a, into))
}

// Create sends body to the subresource of the object that obj names, such as a
// *policyv1.Eviction to eviction. obj is not modified. body is set to the answer, if
// the answer is of its kind.
func (s *SubResource) Create(ctx context.Context, obj, body kube.Object, opts ...Option) error {
	if err := s.check(verbCreate, obj); err != nil {
		return err
	}
	at, err := s.client.newCall(ctx, verbCreate, s.name, obj, opts)
	if err != nil {
		return err
	}
	return s.send(ctx, at, http.MethodPost, body)
}

// Update replaces the subresource of obj. For status and others whose content is the
// object itself, obj is sent and set to the stored object. For others pass the content
// as an option, Update(ctx, deployment, client.Body{scale}); the answer is stored in
// it, and obj is not modified. If the resourceVersion that is sent is stale, the error
// is a *ConflictError. If an informer keeps only some fields of obj, and not the whole
// status and the annotations, it is a *ProjectedObjectError.
func (s *SubResource) Update(ctx context.Context, obj kube.Object, opts ...Option) error {
	if err := s.check(verbUpdate, obj); err != nil {
		return err
	}
	c := s.client
	asked, err := c.collect(verbUpdate, opts)
	if err != nil || asked.body == nil {
		return c.put(ctx, verbUpdate, s.name, http.MethodPut, obj, opts)
	}
	at, err := c.newCall(ctx, verbUpdate, s.name, obj, opts)
	if err != nil {
		return err
	}
	at.version = at.body.GetResourceVersion()
	return s.send(ctx, at, http.MethodPut, at.body)
}

// Patch changes the subresource of the object that obj names. If the subresource's
// content is the object itself, obj is set to the stored object.
func (s *SubResource) Patch(ctx context.Context, obj kube.Object, patch Patch, opts ...Option) error {
	if err := s.check(verbPatch, obj); err != nil {
		return err
	}
	return s.client.patch(ctx, s.name, obj, patch, opts)
}

// Apply applies to the subresource as Client.Apply does to the object. Only the status
// of a typed or unstructured object is sent to the status subresource.
func (s *SubResource) Apply(ctx context.Context, obj any, opts ...Option) error {
	if err := s.check(verbApply, obj); err != nil {
		return err
	}
	return s.client.apply(ctx, s.name, obj, opts)
}

// send sends content whose kind differs from the object's and reads the answer.
func (s *SubResource) send(ctx context.Context, at *call, method string, body kube.Object) error {
	c := s.client
	kind, err := c.bodyKind(body)
	if err != nil {
		return at.wrap(err)
	}
	if err := c.private(at, body); err != nil {
		return err
	}
	if kind == at.kind {
		if err := checkWhole(c.opts.Observer, at, body); err != nil {
			return err
		}
	}
	data, contentType, err := encode(body, kind, false)
	if err != nil {
		return at.wrap(err)
	}
	a, err := c.write(ctx, at, method, contentType, runtime.ContentTypeJSON, data)
	if err != nil {
		return err
	}
	if kind == at.kind {
		return c.readAnswer(at, a, body)
	}
	c.observe(at, at.effect().TouchedBy(a))
	if len(a.Data) == 0 || a.Kind != kind {
		return nil
	}
	return at.wrap(contentOf(a, body))
}

// contentOf decodes the content of a subresource, which keeps its own kind.
func contentOf(a response, into kube.Object) error {
	got := empty(into)
	if err := a.Into(got, a.Kind); err != nil {
		return err
	}
	fill(into, got)
	return nil
}

// bodyKind returns the kind of a subresource's content: the one it carries, or else
// that of the scheme.
func (c *Client) bodyKind(body kube.Object) (kind schema.GroupVersionKind, err error) {
	if isNil(body) {
		return kind, errors.New("the body is nil")
	}
	if own := body.GetObjectKind().GroupVersionKind(); own.Kind != "" && own.Version != "" {
		return own, nil
	}
	kind, err = c.KindOf(body)
	if err != nil {
		err = fmt.Errorf("kind of the body: %w", err)
	}
	return kind, err
}
