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

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/confidential"
	"github.com/flyball-dev/flyball/internal/jsonspan"
	"github.com/flyball-dev/flyball/internal/ration"
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
// *informer.UndecodableError, which concerns one object: the loop may continue with the
// others. The error has the object's key if its metadata can be read, and its text has the
// item's place in the list, counted from 0. Invalid JSON between the items is such an error
// too, unless its end cannot be found. If the loop is so slow that the server has compacted
// the list's version, the list ends with an error for which apierrors.IsResourceExpired
// holds.
func List[T informer.Object](ctx context.Context, c *Client, opts ...Option) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		like, at, err := aimAtAll[T](ctx, c, verbList, opts)
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
			for _, item := range page.items {
				obj := empty(like)
				err := item.into(obj, at.kind)
				if err == nil && obj.GetName() == "" {
					err = errors.New("the object has no name")
				}
				if err != nil {
					if !yield(none, at.wrap(undecodable(at, item, fmt.Errorf("item %d of the list: %w", given, err)))) {
						return
					}
				} else if !yield(obj, nil) {
					return
				}
				given++
			}
			if token = page.token; token == "" {
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

// aimAtAll prepares the call on a collection of T.
func aimAtAll[T informer.Object](ctx context.Context, c *Client, v verb, opts []Option) (like T, at *call, err error) {
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
	return like, at, c.settle(ctx, at, opts)
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

func (c *Client) listPage(ctx context.Context, at *call, like informer.Object, token string) (listPage, error) {
	req, err := c.request(at, http.MethodGet)
	if err != nil {
		return listPage{}, at.wrap(err)
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
		return listPage{}, err
	}
	page, err := a.page()
	if a.discreet {
		err = confidential.Decoding(err)
	}
	return page, at.wrap(err)
}

// ofItem is the estimated memory of an item that is not yet decoded.
const ofItem = 512

// listPage is one page of a list. Its objects are decoded separately, so that one that
// cannot be decoded does not affect the others.
type listPage struct {
	items []answer
	token string
}

// page splits the answer to a list into items.
func (a answer) page() (listPage, error) {
	if a.protobuf {
		return a.protobufPage()
	}
	var metadata, items []byte
	err := jsonspan.EachMember(a.data, func(key []byte, start, end int) bool {
		switch string(key) {
		case "metadata":
			metadata = a.data[start:end]
		case "items":
			items = a.data[start:end]
		}
		return true
	})
	var meta metav1.ListMeta
	if err == nil && metadata != nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(metadata, &meta)
	}
	if err != nil {
		return listPage{}, fmt.Errorf("read the list: %w", err)
	}
	page := listPage{token: meta.Continue}
	if items == nil {
		return page, nil
	}
	// Items are counted before memory is allocated for them.
	count, budget := 0, ration.Budget{Limit: ration.Page}
	err = jsonspan.EachElement(items, func([]byte) error {
		count++
		return tooHeavy(budget.Charge(ofItem))
	})
	if err == nil {
		page.items = make([]answer, 0, count)
		err = jsonspan.EachElement(items, func(raw []byte) error {
			page.items = append(page.items, answer{data: raw, discreet: a.discreet})
			return nil
		})
	}
	if err != nil {
		return listPage{}, fmt.Errorf("read the list: %w", err)
	}
	return page, nil
}

// protobufPage splits the wire format: in every list of the API field 1 is the metadata
// and field 2 the items.
func (a answer) protobufPage() (listPage, error) {
	var page listPage
	budget := ration.Budget{Limit: ration.Page}
	for rest := a.data; len(rest) > 0; {
		number, wire, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return page, fmt.Errorf("read the list: %w", protowire.ParseError(n))
		}
		rest = rest[n:]
		if wire != protowire.BytesType || number > 2 {
			if n = protowire.ConsumeFieldValue(number, wire, rest); n < 0 {
				return page, fmt.Errorf("read the list: %w", protowire.ParseError(n))
			}
			rest = rest[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(rest)
		if n < 0 {
			return page, fmt.Errorf("read the list: %w", protowire.ParseError(n))
		}
		rest = rest[n:]
		if number == 2 {
			if err := budget.Charge(ofItem); err != nil {
				return listPage{}, tooHeavy(err)
			}
			page.items = append(page.items, answer{data: value, protobuf: true, discreet: a.discreet})
			continue
		}
		var metadata metav1.ListMeta
		if err := metadata.Unmarshal(value); err != nil {
			return page, fmt.Errorf("read the list: %w", err)
		}
		page.token = metadata.Continue
	}
	return page, nil
}

// undecodable returns an error that names the object if its metadata can be decoded, even
// if the rest is invalid JSON.
func undecodable(at *call, item answer, err error) error {
	var named metav1.PartialObjectMetadata
	if item.decode(&named) != nil {
		named.ObjectMeta = metav1.ObjectMeta{}
		if !item.protobuf {
			named.ObjectMeta = item.metadata()
		}
	}
	return &informer.UndecodableError{Kind: at.kind, Key: informer.KeyOf(&named), Live: true, Err: err}
}

// metadata reads the metadata of an object that is invalid JSON elsewhere.
func (a answer) metadata() (meta metav1.ObjectMeta) {
	_ = jsonspan.EachMember(a.data, func(key []byte, start, end int) bool {
		if string(key) != "metadata" {
			return true
		}
		part := answer{data: a.data[start:end]}
		if part.decode(&meta) != nil {
			meta = metav1.ObjectMeta{}
		}
		return false
	})
	return meta
}
