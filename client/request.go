// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/internal/textlog"
)

// Values of the Accept header.
const (
	acceptJSON         = runtime.ContentTypeJSON
	acceptProtobuf     = runtime.ContentTypeProtobuf + ", " + runtime.ContentTypeJSON
	acceptMetadata     = runtime.ContentTypeJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1, " + runtime.ContentTypeJSON
	acceptMetadataList = runtime.ContentTypeJSON + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, " + runtime.ContentTypeJSON
)

// protobuf reports whether objects of this Go type are sent as protobuf. A REST
// configuration that asks for JSON gets JSON.
func (c *Client) protobuf(obj runtime.Object) bool {
	return c.config.ContentType != runtime.ContentTypeJSON && speaksProtobuf(obj)
}

func (c *Client) accept(obj informer.Object) string {
	switch {
	case metadataOnly(obj):
		return acceptMetadata
	case c.protobuf(obj):
		return acceptProtobuf
	}
	return acceptJSON
}

func (c *Client) request(at *call, method string) (*rest.Request, error) {
	rc, err := c.restFor(at.kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	req := rc.Verb(method).Resource(at.resource.name).NamespaceIfScoped(at.key.Namespace, at.resource.namespaced)
	if at.key.Name != "" && (at.verb != verbCreate || at.sub != "") {
		req = req.Name(at.key.Name)
	}
	if at.sub != "" {
		req = req.SubResource(at.sub)
	}
	return req, nil
}

// write sends a body and returns the answer. Its errors are complete messages.
func (c *Client) write(ctx context.Context, at *call, method, contentType, accept string, body []byte) (response, error) {
	req, err := c.request(at, method)
	if err != nil {
		return response{}, at.wrap(err)
	}
	req = req.SetHeader("Content-Type", contentType).SetHeader("Accept", accept).Body(body)
	if at.verb&fieldWrites != 0 {
		req = fieldParams(req, at)
	}
	return c.do(ctx, at, req)
}

// fieldParams sets the query parameters that create, update, patch and apply share.
// Deletions have theirs in the body.
func fieldParams(req *rest.Request, at *call) *rest.Request {
	if at.fieldOwner != "" {
		req = req.Param("fieldManager", at.fieldOwner)
	}
	if at.fieldValidation != "" {
		req = req.Param("fieldValidation", string(at.fieldValidation))
	}
	if at.dryRun {
		req = req.Param("dryRun", metav1.DryRunAll)
	}
	if at.force {
		req = req.Param("force", strconv.FormatBool(true))
	}
	return req
}

// do sends the request and opens the answer. Its errors are complete messages.
func (c *Client) do(ctx context.Context, at *call, req *rest.Request) (response, error) {
	res, err := c.result(ctx, at, req)
	if err != nil {
		observeLost(c, at)
		return response{}, c.fault(ctx, at, err)
	}
	var contentType string
	res.ContentType(&contentType)
	raw, err := res.Raw()
	a := response{}
	if err == nil {
		a, err = effects.Open(contentType, raw)
	}
	if err != nil {
		at.lost = true
		observeLost(c, at)
	}
	if a.Discreet = at.discreet(); a.Discreet {
		err = redact.Decoding(err)
	}
	return a, at.wrap(err)
}

// result sends the request and returns the result, or the server's error.
func (c *Client) result(ctx context.Context, at *call, req *rest.Request) (res rest.Result, err error) {
	req = req.MaxRetries(0) // send decides on retries; it uses more than the status code
	err = c.send(ctx, at, c.opts.Timeout, func(ctx context.Context) error {
		res = req.Do(textlog.Quiet(ctx))
		return at.answered(res.Error())
	})
	return res, err
}
