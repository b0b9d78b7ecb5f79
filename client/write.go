// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/kube"
)

// Create writes a new object. obj is set to the stored object; on an error it is
// unchanged. If obj has metadata.generateName and no name, the client chooses the name, by
// the server's rules, so that an object whose creation was not answered can be found again.
func (c *Client) Create(ctx context.Context, obj kube.Object, opts ...Option) error {
	if isNil(obj) || obj.GetName() != "" || obj.GetGenerateName() == "" {
		return c.put(ctx, verbCreate, "", http.MethodPost, obj, opts)
	}
	if s, ok := c.opts.Observer.(sharer); ok && s.Shares(obj) {
		return c.put(ctx, verbCreate, "", http.MethodPost, obj, opts) // which refuses it
	}
	named := kube.Copy(obj)
	for tries := 1; ; tries++ {
		named.SetName(generatedName(ctx, obj.GetGenerateName()))
		err := c.put(ctx, verbCreate, "", http.MethodPost, named, opts)
		if apierrors.IsAlreadyExists(err) && tries < nameTries {
			continue
		}
		if err == nil {
			fill(obj, named)
		}
		return err
	}
}

const (
	// nameTries is how many names are tried for an object with a generateName.
	nameTries = 8
	// nameChars are those of the server's generated names, which form no words.
	nameChars   = "bcdfghjklmnpqrstvwxz2456789"
	nameRandoms = 5
	nameLength  = 63
)

// generatedName returns a name as the server would generate it from base.
func generatedName(ctx context.Context, base string) string {
	name := []byte(base[:min(len(base), nameLength-nameRandoms)])
	for range nameRandoms {
		name = append(name, nameChars[int(contextvalues.Random(ctx, "name "+base)*float64(len(nameChars)))])
	}
	return string(name)
}

// Update replaces the object with obj, and sets obj to the stored object; on an error
// obj is unchanged. obj must carry its resourceVersion, else nothing is sent: if the
// object has changed since, the error is a *ConflictError. Fields on the server that
// obj's Go type does not know are removed; to keep them, use PatchChanges, or read and
// update an *unstructured.Unstructured. An obj from a Lister is shared, and the error
// is a *SharedObjectError: update a kube.Copy of it. If an informer keeps only some
// fields of it, the error is a *ProjectedObjectError.
func (c *Client) Update(ctx context.Context, obj kube.Object, opts ...Option) error {
	return c.put(ctx, verbUpdate, "", http.MethodPut, obj, opts)
}

func (c *Client) put(ctx context.Context, v verb, sub, method string, obj kube.Object, opts []Option) error {
	at, err := c.newCall(ctx, v, sub, obj, opts)
	if err != nil {
		return err
	}
	if err := c.private(at, obj); err != nil {
		return err
	}
	if err := checkWhole(c.opts.Observer, at, obj); err != nil {
		return err
	}
	sent := obj
	if v == verbCreate && sub == "" {
		sent = c.traces.withSpan(ctx, obj)
	}
	body, contentType, err := encode(sent, at.kind, c.protobuf(obj))
	if err != nil {
		return at.wrap(err)
	}
	if v == verbUpdate {
		if at.version = obj.GetResourceVersion(); at.version == "" {
			return at.wrap(errors.New("the object has no resourceVersion, so that it would overwrite what others have changed; read it with Get, " +
				"or set the fields that you want with Apply or Patch, which need no version"))
		}
	}
	a, err := c.write(ctx, at, method, contentType, c.accept(obj), body)
	if err != nil {
		return err
	}
	return c.readAnswer(at, a, obj)
}
