// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer"
)

// Patch is a change of an object. Using the zero Patch is an error.
type Patch struct {
	kind types.PatchType
	data func(obj informer.Object, kind schema.GroupVersionKind) ([]byte, error)
	from informer.Object // of MergeFrom
	sent informer.Object // that is sent as a merge patch

	elements bool // operations on elements of lists, made for one version
}

// MergePatch returns a JSON merge patch (RFC 7386): fields of change replace those of
// the object, null removes a field. change is marshalled to JSON; a []byte or
// json.RawMessage is sent as it is.
func MergePatch(change any) Patch { return given(types.MergePatchType, change) }

// StrategicMergePatch returns a patch that merges lists by their keys. The server
// supports it for built-in kinds, not for custom resources. change is as for
// MergePatch.
func StrategicMergePatch(change any) Patch { return given(types.StrategicMergePatchType, change) }

// JSONPatch returns a patch that is a list of operations (RFC 6902).
func JSONPatch(ops ...JSONOp) Patch {
	if ops == nil {
		ops = []JSONOp{}
	}
	return given(types.JSONPatchType, ops)
}

// MergeFrom returns the JSON merge patch that turns old into the object that is
// patched: copy the object that was read, change the copy, and patch it with MergeFrom
// the original. The patch is unconditional, unless it changes elements of a list of
// objects: it is then a JSON patch of these elements, to old's resourceVersion, so that
// they keep fields that the Go type does not know. If the two objects do not show which
// element became which, the error is an *UnknownFieldsError. If the change depends
// on what was read, as a change of any list does, add Preconditions{ResourceVersion:
// old.GetResourceVersion()}.
func MergeFrom(old informer.Object) Patch {
	return Patch{kind: types.MergePatchType, from: old, data: func(obj informer.Object, kind schema.GroupVersionKind) ([]byte, error) {
		if isNil(old) || reflect.TypeOf(old) != reflect.TypeOf(obj) {
			return nil, fmt.Errorf("make merge patch from %T to %T: the two must be of one type, and not nil", old, obj)
		}
		before, err := tree(old, kind)
		if err != nil {
			return nil, err
		}
		after, err := tree(obj, kind)
		if err != nil {
			return nil, err
		}
		return json.Marshal(difference(before, after))
	}}
}

func given(kind types.PatchType, change any) Patch {
	sent, _ := objectIn(change)
	return Patch{kind: kind, sent: sent, data: func(informer.Object, schema.GroupVersionKind) ([]byte, error) {
		if raw, ok := change.([]byte); ok {
			return raw, nil
		}
		return json.Marshal(change)
	}}
}

// objectIn returns the object that v points to, or is.
func objectIn(v any) (obj informer.Object, ok bool) {
	if obj, ok = v.(informer.Object); ok || v == nil {
		return obj, ok
	}
	if t := reflect.TypeOf(v); t.Kind() != reflect.Struct || !reflect.PointerTo(t).Implements(reflect.TypeFor[informer.Object]()) {
		return nil, false
	}
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	obj, ok = p.Interface().(informer.Object)
	return obj, ok
}

// tree returns obj as JSON values.
func tree(obj informer.Object, kind schema.GroupVersionKind) (map[string]any, error) {
	if !untyped(obj) {
		obj = shallow(obj)
		obj.GetObjectKind().SetGroupVersionKind(kind)
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var t map[string]any
	return t, kjson.UnmarshalCaseSensitivePreserveInts(data, &t)
}

// setByServer lists the fields of metadata that an applied object does not claim.
var setByServer = [...]string{
	"managedFields", "resourceVersion", "creationTimestamp", "uid", "generation",
	"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds",
}

// changeable returns obj as JSON values, without the fields that the server sets.
func changeable(obj informer.Object, at *call) (map[string]any, error) {
	t, err := tree(obj, at.kind)
	if metadata, ok := t["metadata"].(map[string]any); ok {
		for _, field := range setByServer {
			delete(metadata, field)
		}
	}
	return t, err
}

// difference returns the merge patch from one tree to another: null for removed fields,
// lists as a whole.
func difference(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range from {
		if _, stays := to[name]; !stays {
			patch[name] = nil
		}
	}
	for name, after := range to {
		before, was := from[name]
		if was && reflect.DeepEqual(before, after) {
			continue
		}
		inBefore, ok1 := before.(map[string]any)
		inAfter, ok2 := after.(map[string]any)
		if ok1 && ok2 {
			patch[name] = difference(inBefore, inAfter)
		} else {
			patch[name] = after
		}
	}
	return patch
}

// Patch changes the object that obj names. obj is set to the stored object; on an error
// it is unchanged.
func (c *Client) Patch(ctx context.Context, obj informer.Object, patch Patch, opts ...Option) error {
	return c.patch(ctx, "", obj, patch, opts)
}

func (c *Client) patch(ctx context.Context, sub string, obj informer.Object, patch Patch, opts []Option) error {
	at, err := c.aim(ctx, verbPatch, sub, obj, opts)
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
	return c.settled(at, a, obj)
}

func (c *Client) sendPatch(ctx context.Context, at *call, obj informer.Object, patch Patch) (answer, error) {
	if patch.data == nil {
		return answer{}, at.wrap(errors.New("the patch is empty; make it with MergePatch, JSONPatch, StrategicMergePatch or MergeFrom"))
	}
	body, err := patch.data(obj, at.kind)
	if err != nil {
		return answer{}, at.wrap(err)
	}
	if err := checkPatch(c.opts.Observer, at, obj, patch, body); err != nil {
		return answer{}, err
	}
	if operations, err := elementsOf(at, obj, patch.from); err != nil {
		return answer{}, at.wrap(err)
	} else if operations != nil {
		patch.kind, patch.elements = types.JSONPatchType, true
		if body, err = json.Marshal(operations); err != nil {
			return answer{}, at.wrap(err)
		}
	}
	if body, err = at.preconditions.patch(patch.kind, body); err != nil {
		return answer{}, at.wrap(err)
	}
	if at.version = at.preconditions.ResourceVersion; at.version == "" {
		at.version = versionIn(patch.kind, body)
	}
	a, err := c.write(ctx, at, http.MethodPatch, string(patch.kind), c.accept(obj), body)
	if patch.elements && apierrors.IsInvalid(err) {
		err = c.outdated(ctx, at, err)
	}
	return a, err
}

// outdated returns a conflict if the object has another version than operations were made for,
// else err: the server applies them before it compares the versions, and an element that is no
// longer there makes them invalid.
func (c *Client) outdated(ctx context.Context, at *call, err error) error {
	is := &metav1.PartialObjectMetadata{}
	is.SetGroupVersionKind(at.kind)
	if c.Get(ctx, at.key, is) != nil || is.GetResourceVersion() == at.version {
		return err
	}
	group := schema.GroupResource{Group: at.kind.Group, Resource: at.resource.name}
	return c.fault(ctx, at, apierrors.NewConflict(group, at.key.Name, err))
}

// elementsOf returns the operations that turn from into obj, if a merge patch would replace a
// list whose elements may have fields that the Go type does not know. They fit only the version
// that was read, which becomes a precondition of the call.
func elementsOf(at *call, obj, from informer.Object) ([]JSONOp, error) {
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
	if at.preconditions.ResourceVersion == "" {
		at.preconditions.ResourceVersion = from.GetResourceVersion()
	}
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
func (at *call) ofVersion(from informer.Object) error {
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
		for name, value := range p.metadata() {
			op, err := json.Marshal(JSONOp{Op: "replace", Path: "/metadata/" + name, Value: value})
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
