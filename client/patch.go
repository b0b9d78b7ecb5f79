// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/kube"
)

// changeable returns obj as JSON values, without the fields that the server sets.
func changeable(obj kube.Object, at *call) (map[string]any, error) {
	t, err := tree(obj, at.kind)
	if metadata, ok := t["metadata"].(map[string]any); ok {
		for _, field := range setByServer {
			delete(metadata, field)
		}
	}
	return t, err
}

// Patch changes the object that obj names. obj is set to the stored object; on an error
// it is unchanged.
func (c *Client) Patch(ctx context.Context, obj kube.Object, patch Patch, opts ...Option) error {
	return c.patch(ctx, "", obj, patch, opts)
}

func (c *Client) patch(ctx context.Context, sub string, obj kube.Object, patch Patch, opts []Option) error {
	at, err := c.newCall(ctx, verbPatch, sub, obj, opts)
	if err != nil {
		return err
	}
	if err := c.private(at, obj); err != nil {
		return err
	}
	a, err := c.sendPatch(ctx, at, obj, patch)
	if err != nil {
		return err
	}
	return c.readAnswer(at, a, obj)
}

func (c *Client) sendPatch(ctx context.Context, at *call, obj kube.Object, patch Patch) (response, error) {
	if patch.data == nil {
		return response{}, at.wrap(errors.New("the patch is empty; make it with MergePatch, JSONPatch, StrategicMergePatch or MergeFrom"))
	}
	body, err := patch.data(obj, at.kind)
	if err != nil {
		return response{}, at.wrap(err)
	}
	if err := checkPatch(c.opts.Observer, at, obj, patch, body); err != nil {
		return response{}, err
	}
	if operations, err := elementsOf(at, obj, patch.from); err != nil {
		return response{}, at.wrap(err)
	} else if operations != nil {
		patch.kind, patch.elements = types.JSONPatchType, true
		if body, err = json.Marshal(operations); err != nil {
			return response{}, at.wrap(err)
		}
	}
	if body, err = at.preconditions.patch(patch.kind, body); err != nil {
		return response{}, at.wrap(err)
	}
	if at.version = at.preconditions.ResourceVersion; at.version == "" {
		at.version = versionIn(patch.kind, body)
	}
	a, err := c.write(ctx, at, http.MethodPatch, string(patch.kind), c.accept(obj), body)
	if patch.elements && apierrors.IsInvalid(err) {
		err = conflicting(ctx, c, at, err)
	}
	return a, err
}

// conflicting returns a conflict if the object has another version than operations were made for,
// else err: the server applies them before it compares the versions, and an element that is no
// longer there makes them invalid.
func conflicting(ctx context.Context, c *Client, at *call, err error) error {
	is, unread := metadataOf(ctx, c, at.kind, at.key)
	if unread != nil || is.GetResourceVersion() == at.version {
		return err
	}
	group := schema.GroupResource{Group: at.kind.Group, Resource: at.resource.name}
	return c.fault(ctx, at, apierrors.NewConflict(group, at.key.Name, err))
}

// elementsOf returns the operations that turn from into obj, if a merge patch would replace a
// list whose elements may have fields that the Go type does not know. They fit only the version
// that was read, which becomes a precondition of the call.
func elementsOf(at *call, obj, from kube.Object) ([]JSONOp, error) {
	if _, loose := obj.(*unstructured.Unstructured); loose || isNil(from) {
		return nil, nil
	}
	before, err := changeable(from, at)
	if err != nil {
		return nil, err
	}
	after, err := changeable(obj, at)
	if err != nil || !elementsChange(before, after) {
		return nil, err
	}
	operations, unsure := operationsOf(before, after)
	at.preconditions.ResourceVersion = cmp.Or(at.preconditions.ResourceVersion, from.GetResourceVersion())
	if err := at.ofVersion(from); err != nil {
		return nil, err
	}
	if unsure != "" || at.preconditions.ResourceVersion == "" {
		return nil, &UnknownFieldsError{Kind: at.kind, Key: at.key, List: unsure, fix: fixUnsure}
	}
	return operations, nil
}

// ofVersion returns an error if the preconditions name another version than from has: the elements
// of its lists may be others there.
func (at *call) ofVersion(from kube.Object) error {
	if required := at.preconditions.ResourceVersion; from.GetResourceVersion() != "" && required != from.GetResourceVersion() {
		return fmt.Errorf("the change of a list is one of resourceVersion %s, and the preconditions name %s; leave them out, or read that version",
			from.GetResourceVersion(), required)
	}
	return nil
}

// patch adds the preconditions to the body of a patch. The API has no other place for
// them: a uid or resourceVersion in the patch must be the object's.
func (p Preconditions) patch(kind types.PatchType, body []byte) ([]byte, error) {
	if p == (Preconditions{}) {
		return body, nil
	}
	if kind == types.JSONPatchType {
		var ops []json.RawMessage
		if err := json.Unmarshal(body, &ops); err != nil {
			return nil, fmt.Errorf("add the preconditions to the patch: %w", err)
		}
		var conditions []json.RawMessage
		metadata := p.metadata()
		for _, name := range slices.Sorted(maps.Keys(metadata)) { // a replay must send the same
			op, err := json.Marshal(JSONOp{Op: "replace", Path: "/metadata/" + name, Value: metadata[name]})
			if err != nil {
				return nil, err
			}
			conditions = append(conditions, op)
		}
		return json.Marshal(append(conditions, ops...))
	}
	var t map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &t); err != nil {
		return nil, fmt.Errorf("add the preconditions to the patch: %w", err)
	}
	if t == nil {
		t = map[string]any{}
	}
	metadata, ok := t["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		t["metadata"] = metadata
	}
	for name, value := range p.metadata() {
		metadata[name] = value
	}
	return json.Marshal(t)
}

func (p Preconditions) metadata() map[string]string {
	m := map[string]string{}
	if p.UID != "" {
		m["uid"] = string(p.UID)
	}
	if p.ResourceVersion != "" {
		m["resourceVersion"] = p.ResourceVersion
	}
	return m
}

// versionIn returns the resourceVersion in a merge patch or an applied configuration.
func versionIn(kind types.PatchType, body []byte) string {
	if kind == types.JSONPatchType {
		return ""
	}
	var named struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &named); err != nil {
		return ""
	}
	return named.Metadata.ResourceVersion
}
