// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/kube"
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

func (c *Client) accept(obj kube.Object) string {
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

// speaksProtobuf reports whether obj is of a built-in kind. A custom resource's type
// may have the methods too, but the server accepts custom resources only as JSON.
func speaksProtobuf(obj runtime.Object) bool {
	if _, ok := obj.(effects.ProtobufMessage); !ok {
		return false
	}
	pkg := reflect.TypeOf(obj).Elem().PkgPath()
	return strings.HasPrefix(pkg, "k8s.io/api/")
}

// encode returns the body and content type of a write of obj. It does not modify obj.
func encode(obj kube.Object, kind schema.GroupVersionKind, protobuf bool) (body []byte, contentType string, err error) {
	if metadataOnly(obj) {
		return nil, "", errors.New("an object known by its metadata alone cannot be written whole; use Patch")
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		body, err = json.Marshal(u.Object)
		return body, runtime.ContentTypeJSON, err
	}
	obj = shallow(obj)
	obj.GetObjectKind().SetGroupVersionKind(kind)
	if !protobuf {
		body, err = json.Marshal(obj)
		return body, runtime.ContentTypeJSON, err
	}
	raw, err := obj.(effects.ProtobufMessage).Marshal()
	if err != nil {
		return nil, "", err
	}
	envelope := runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind},
		Raw:      raw,
	}
	message, err := envelope.Marshal()
	if err != nil {
		return nil, "", err
	}
	return append([]byte(effects.ProtobufMagic), message...), runtime.ContentTypeProtobuf, nil
}

// shallow returns a shallow copy of obj, so that its kind can be set without changing
// the caller's object.
func shallow[T runtime.Object](obj T) T {
	to := empty(obj)
	fill(to, obj)
	return to
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
