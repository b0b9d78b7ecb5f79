// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// pageSize is the page size without Limit; it is the one that kubectl uses.
	pageSize = 500
	// maxRestarts bounds how often a list restarts when its continue token expires
	// before the first object was yielded.
	maxRestarts = 3
)

// List yields all objects of T's kind that the options select. It reads them from the
// API server, not from a cache, page by page as the loop advances. Each object belongs
// to the caller. For *unstructured.Unstructured and *metav1.PartialObjectMetadata pass
// the kind with OfKind.
//
// An error comes with the zero T and ends the list, except for an
// *kube.UndecodableError, which concerns one object: the loop may continue with the
// others. The error has the object's key if its metadata can be read, and its text has the
// item's place in the list, counted from 0. Invalid JSON between the items is such an error
// too, unless its end cannot be found. If the loop is so slow that the server has compacted
// the list's version, the list ends with an error for which apierrors.IsResourceExpired
// holds.
func List[T kube.Object](ctx context.Context, c *Client, opts ...Option) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		like, at, err := newCallOnAll[T](ctx, c, verbList, opts)
		if err != nil {
			yield(none, err)
			return
		}
		given, restarts := 0, 0
		for token := ""; ; {
			page, err := c.listPage(ctx, at, like, token)
			if apierrors.IsResourceExpired(err) && token != "" && given == 0 && restarts < maxRestarts {
				token = ""
				restarts++
				continue
			}
			if _, large := errors.AsType[*TooLargeError](err); large && at.limit != 1 {
				at.limit = max(cmp.Or(at.limit, pageSize)/4, 1)
				continue
			}
			if err != nil {
				yield(none, expired(err, given))
				return
			}
			for _, item := range page.Items {
				obj := empty(like)
				err := item.Into(obj, at.kind)
				if err == nil && obj.GetName() == "" {
					err = errors.New("the object has no name")
				}
				if err != nil {
					obj, err = none, at.wrap(undecodable(at, item, fmt.Errorf("item %d of the list: %w", given, err)))
				}
				if !yield(obj, err) {
					return
				}
				given++
			}
			if token = page.Token; token == "" {
				return
			}
		}
	}
}

func expired(err error, given int) error {
	if !apierrors.IsResourceExpired(err) || given == 0 {
		return err
	}
	return fmt.Errorf("%w (the list has expired after %d objects: start it again, collect objects before working on them, or raise client.Limit)", err, given)
}

// newCallOnAll prepares the call on a collection of T.
func newCallOnAll[T kube.Object](ctx context.Context, c *Client, v verb, opts []Option) (like T, at *call, err error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		return like, nil, fmt.Errorf("%s %s: the type must be a pointer to an API type, as *corev1.ConfigMap", v, t)
	}
	like = reflect.New(t.Elem()).Interface().(T)
	at = &call{verb: v}
	asked, err := c.collect(v, opts)
	if err != nil {
		return like, nil, fmt.Errorf("%s %s: %w", v, t, err)
	}
	at.key.Namespace = asked.namespace
	switch {
	case !untyped(like):
		at.kind, err = c.KindOf(like)
	case asked.kind.Empty():
		err = errors.New("the type does not determine the kind; pass client.OfKind")
	default:
		at.kind = asked.kind
	}
	if err != nil {
		return like, nil, fmt.Errorf("%s %s: %w", v, t, err)
	}
	return like, at, c.prepare(ctx, at, opts)
}

func selectParams(req *rest.Request, at *call) *rest.Request {
	if at.labels != nil && !at.labels.Empty() {
		req = req.Param("labelSelector", at.labels.String())
	}
	if at.fields != nil && !at.fields.Empty() {
		req = req.Param("fieldSelector", at.fields.String())
	}
	return req
}

func (c *Client) listPage(ctx context.Context, at *call, like kube.Object, token string) (effects.Page, error) {
	req, err := c.request(at, http.MethodGet)
	if err != nil {
		return effects.Page{}, at.wrap(err)
	}
	req = selectParams(req, at).Param("limit", fmt.Sprint(cmp.Or(at.limit, pageSize)))
	if token != "" {
		req = req.Param("continue", token)
	}
	accept := c.accept(like)
	if metadataOnly(like) {
		accept = acceptMetadataList
	}
	a, err := c.do(ctx, at, req.SetHeader("Accept", accept))
	if err != nil {
		return effects.Page{}, err
	}
	page, err := a.Page()
	if a.Discreet {
		err = redact.Decoding(err)
	}
	return page, at.wrap(err)
}

// undecodable returns an error that names the object if its metadata can be decoded, even
// if the rest is invalid JSON.
func undecodable(at *call, item response, err error) error {
	var named metav1.PartialObjectMetadata
	if item.Decode(&named) != nil {
		named.ObjectMeta = metav1.ObjectMeta{}
		if !item.Protobuf {
			named.ObjectMeta = item.Metadata()
		}
	}
	return &kube.UndecodableError{Kind: at.kind, Key: kube.KeyOf(&named), Live: true, Err: err}
}
