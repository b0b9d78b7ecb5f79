// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/kube"
)

// Apply creates or changes an object by server-side apply. The field owner comes to own
// the fields in obj; fields that it owned before and that obj omits are removed. Apply
// requires a FieldOwner. If another owner holds a field with another value, the error
// is a conflict (apierrors.IsConflict), unless Force is given.
//
// obj is one of:
//   - an apply configuration of client-go, or anything else that marshals to an object
//     with apiVersion, kind and metadata.name. It is sent as it is;
//   - a typed object. It is sent without status, without the server-set fields of
//     metadata, without null and empty structs, and without empty values of fields with
//     omitempty, so that a plain struct does not claim what it does not say. A zero, or an
//     empty list, of a field without omitempty is claimed. To claim another zero, use a
//     pointer to it. Entries of maps and elements of lists are always kept. obj is set to
//     the stored object;
//   - an *unstructured.Unstructured. It is sent without status and the server-set
//     fields of metadata, zeros included. obj is set to the stored object.
//
// A copy of a cached object of which the informer keeps only some fields is a
// *ProjectedObjectError: apply a new object.
//
// The stringData of a Secret is sent as data, so that what is no longer in it is removed.
//
// resourceVersion is sent only if an apply configuration has it or with Preconditions.
func (c *Client) Apply(ctx context.Context, obj any, opts ...Option) error {
	return c.apply(ctx, "", obj, opts)
}

func (c *Client) apply(ctx context.Context, sub string, obj any, opts []Option) error {
	at := &call{verb: verbApply, sub: sub}
	tree, object, err := at.configuration(c, obj)
	if err != nil {
		return fmt.Errorf("apply %T: %w", obj, err)
	}
	if err := c.prepare(ctx, at, opts); err != nil {
		return err
	}
	if err := c.private(at, object); err != nil {
		return err
	}
	if err := checkWhole(c.opts.Observer, at, object); err != nil {
		return err
	}
	like := object
	if isNil(like) {
		like = c.whole(nil, at.kind)
	}
	c.traces.addSpan(ctx, tree, at.kind.GroupVersion().WithResource(at.resource.name+sub), at.key, like)
	body, err := json.Marshal(tree)
	if err != nil {
		return at.wrap(err)
	}
	if body, err = at.preconditions.patch(types.ApplyPatchType, body); err != nil {
		return at.wrap(err)
	}
	at.version = versionIn(types.ApplyPatchType, body)
	_, claimsStatus := tree[statusName]
	wish := intentOf(c, at, body, claimsStatus, like)
	if held := wish.known(); held != nil {
		if !isNil(object) {
			fill(object, kube.Copy(held))
		}
		return nil
	}
	if at.confirm != nil {
		if err := at.confirm(ctx); err != nil {
			return err
		}
	}
	if err := handOver(ctx, c, at, wish.key); err != nil {
		return at.wrap(fmt.Errorf("hand over fields: %w", err))
	}
	end := wish.begin()
	a, err := wish.send(ctx, c, body)
	if err != nil {
		end(false)
		return err
	}
	if wish.may {
		object = like
	}
	err = c.readAnswer(at, a, object)
	end(err == nil && a.Is(at.kind))
	return err
}

// configuration returns the JSON tree to send for obj, and sets the kind, key and UID
// in at. object is obj if the answer is to be stored in it.
func (at *call) configuration(c *Client, obj any) (tree map[string]any, object kube.Object, err error) {
	if isNil(obj) {
		return nil, nil, errors.New("it is nil")
	}
	object, ok := objectIn(obj)
	if !ok {
		tree, err = foreignTree(at, obj)
		return withoutStringData(at.kind, tree), nil, err
	}
	at.key, at.uid = kube.KeyOf(object), object.GetUID()
	if at.kind, err = c.KindOf(object); err != nil {
		return nil, nil, err
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		tree = maps.Clone(u.Object)
	} else if tree, err = pruned(object); err != nil {
		return nil, nil, err
	}
	return withoutStringData(at.kind, claimed(tree, at)), object, nil
}

// claimed reduces an object to the fields that a client can claim: all except status
// and the server-set metadata, or, for the status subresource, only status.
func claimed(tree map[string]any, at *call) map[string]any {
	tree["apiVersion"], tree["kind"] = at.kind.ToAPIVersionAndKind()
	metadata, _ := tree["metadata"].(map[string]any)
	if at.sub == statusName {
		metadata = map[string]any{"name": at.key.Name}
		if at.key.Namespace != "" {
			metadata["namespace"] = at.key.Namespace
		}
		status, has := tree[statusName]
		tree = map[string]any{"apiVersion": tree["apiVersion"], "kind": tree["kind"], "metadata": metadata}
		if has {
			tree[statusName] = status
		}
		return tree
	}
	delete(tree, statusName)
	metadata = maps.Clone(metadata)
	for _, field := range setByServer {
		delete(metadata, field)
	}
	tree["metadata"] = metadata
	return tree
}

// foreignTree returns the JSON tree of an apply configuration.
func foreignTree(at *call, obj any) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var named struct {
		metav1.TypeMeta
		Metadata struct {
			Name      string    `json:"name"`
			Namespace string    `json:"namespace"`
			UID       types.UID `json:"uid"`
		} `json:"metadata"`
	}
	var tree map[string]any
	if err := errors.Join(kjson.UnmarshalCaseSensitivePreserveInts(data, &named), kjson.UnmarshalCaseSensitivePreserveInts(data, &tree)); err != nil {
		return nil, fmt.Errorf("it does not marshal to an object: %w", redact.Decoding(err)) // the kind is not known here
	}
	at.kind = schema.FromAPIVersionAndKind(named.APIVersion, named.Kind)
	at.key = kube.Key{Namespace: named.Metadata.Namespace, Name: named.Metadata.Name}
	at.uid = named.Metadata.UID
	if at.kind.Kind == "" || at.kind.Version == "" {
		return nil, errors.New("it has no apiVersion and kind; pass an apply configuration made by its constructor, or set them")
	}
	return tree, nil
}

// pruned returns a typed object as JSON values, without empty ones.
func pruned(obj kube.Object) (map[string]any, error) {
	v := reflect.ValueOf(obj)
	if v.Elem().Kind() != reflect.Struct {
		return nil, errors.New("it is no struct; pass an apply configuration, a typed or an unstructured object")
	}
	tree, _, err := prune(v.Elem(), 0)
	if err != nil {
		return nil, err
	}
	fields, ok := tree.(map[string]any)
	if !ok {
		return nil, errors.New("it does not marshal to an object")
	}
	return fields, nil
}
