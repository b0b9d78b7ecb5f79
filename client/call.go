// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/ownevents"
	"github.com/flyball-dev/flyball/kube"
)

// verb is one kind of call. Verbs are bits, so a set of them is their sum.
type verb uint16

const (
	verbGet verb = 1 << iota
	verbList
	verbCreate
	verbUpdate
	verbPatch
	verbApply
	verbDelete
	verbDeleteAllOf
	verbEvict
	verbWatch
)

var verbNames = map[verb]string{
	verbGet: "get", verbList: "list", verbCreate: "create", verbUpdate: "update", verbPatch: "patch",
	verbApply: "apply", verbDelete: "delete", verbDeleteAllOf: "delete all of", verbEvict: "evict",
	verbWatch: "watch",
}

func (v verb) String() string { return cmp.Or(verbNames[v], "call") }

// statusName is the name of both the field and the subresource.
const statusName = "status"

// call describes one request: the operation, the object, and the resource.
type call struct {
	callOptions
	verb     verb
	sub      string // subresource; empty: the object itself
	kind     schema.GroupVersionKind
	key      kube.Key
	generate string    // generateName of a create without a name
	uid      types.UID // of the caller's object; may be empty
	version  string    // resourceVersion sent as a precondition; may be empty
	resource resource
	lost     bool               // an attempt may have taken effect although it failed
	task     contextvalues.Task // the reconcile that makes the call; nil: none
	run      ownevents.Run      // task, if it has a ledger
	code     int                // of the answer
}

// newCall prepares a call on obj. It checks everything that can be checked before the
// object is requested. Its errors are complete messages.
func (c *Client) newCall(ctx context.Context, v verb, sub string, obj kube.Object, options []Option) (*call, error) {
	if isNil(obj) {
		return nil, fmt.Errorf("%s object: it is nil", v)
	}
	return c.newCallAt(ctx, v, sub, kube.KeyOf(obj), obj, options)
}

// newCallAt is newCall with the key given separately.
func (c *Client) newCallAt(ctx context.Context, v verb, sub string, key kube.Key, obj kube.Object, options []Option) (*call, error) {
	if isNil(obj) {
		return nil, fmt.Errorf("%s %s: the object is nil", v, key)
	}
	at := &call{verb: v, sub: sub, key: key, uid: obj.GetUID(), generate: obj.GetGenerateName()}
	var err error
	if at.kind, err = c.KindOf(obj); err != nil {
		return nil, fmt.Errorf("%s %s: %w", v, path(key.Namespace, key.Name), err)
	}
	return at, c.prepare(ctx, at, options)
}

// prepare fills in the options and the resource of a call whose kind and key are set.
func (c *Client) prepare(ctx context.Context, at *call, options []Option) error {
	var err error
	at.task = contextvalues.TaskOf(ctx)
	at.run = ownevents.RunOf(ctx)
	if at.callOptions, err = c.collect(at.verb, options); err != nil {
		return at.wrap(err)
	}
	if err := at.check(); err != nil {
		return at.wrap(err)
	}
	place := func() error {
		if at.resource, err = c.mapper.find(ctx, at.kind); err != nil {
			return err
		}
		if err := c.confine(at); err != nil {
			return err
		}
		if err := at.checkScope(); err != nil {
			return scopeError{err}
		}
		return nil
	}
	if err = place(); errors.As(err, new(scopeError)) {
		// The kind may have been defined anew, with another scope.
		c.mapper.forget(at.kind.GroupVersion())
		err = place()
	}
	return at.wrap(err)
}

// scopeError reports that a namespace does not fit the scope of a kind, as far as it is known.
type scopeError struct{ error }

func (at *call) check() error {
	one := at.verb&selections == 0
	switch {
	case one && at.key.Name == "" && (at.verb != verbCreate || at.sub != ""):
		return errors.New("the object has no name; set metadata.name")
	case at.key.Name == "" && at.verb == verbCreate && at.generate == "":
		return errors.New("the object has no name; set metadata.name or metadata.generateName")
	case at.verb == verbApply && at.fieldOwner == "":
		return errors.New(`server-side apply needs a field owner; pass client.FieldOwner("my-controller") or set Options.FieldOwner`)
	case at.body != nil && at.sub == "":
		return errors.New("client.Body is for subresources; pass the object itself")
	}
	return nil
}

func (at *call) checkScope() error {
	switch {
	case !at.resource.namespaced && at.key.Namespace != "":
		return fmt.Errorf("kind %s is cluster-scoped; leave the namespace %q out", at.kind.Kind, at.key.Namespace)
	case at.resource.namespaced && at.key.Namespace == "" && at.verb == verbDeleteAllOf:
		return fmt.Errorf("kind %s is namespaced and the API deletes collections in one namespace at a time; pass client.InNamespace", at.kind.Kind)
	case at.resource.namespaced && at.key.Namespace == "" && at.verb&(verbList|verbWatch) == 0:
		return fmt.Errorf("kind %s is namespaced; set metadata.namespace", at.kind.Kind)
	}
	return nil
}

// String returns the beginning of an error message, such as "update status of Website
// prod/web".
func (at *call) String() string {
	what := at.verb.String()
	if at.sub != "" && at.verb != verbEvict {
		what += " " + at.sub + " of"
	}
	what += " " + at.kind.Kind
	switch {
	case at.verb&selections != 0:
		if at.key.Namespace != "" {
			what += fmt.Sprintf(" in %q", at.key.Namespace)
		}
		return what
	case at.key.Name == "" && at.generate != "":
		return what + " " + path(at.key.Namespace, at.generate+"*")
	}
	return what + " " + path(at.key.Namespace, at.key.Name)
}

func path(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// wrap prefixes err with the operation; nil stays nil.
func (at *call) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", at, err)
}

// KindOf returns the kind of obj. The scheme determines it by Go type, except for
// *unstructured.Unstructured and *metav1.PartialObjectMetadata, which carry it in
// apiVersion and kind.
func (c *Client) KindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	if isNil(obj) {
		return schema.GroupVersionKind{}, errors.New("the object is nil")
	}
	own := obj.GetObjectKind().GroupVersionKind()
	if untyped(obj) {
		if own.Kind == "" || own.Version == "" {
			return own, fmt.Errorf("a %T must say its kind; set apiVersion and kind, or call SetGroupVersionKind", obj)
		}
		return own, nil
	}
	kinds, _, err := c.scheme.ObjectKinds(obj)
	if err != nil {
		return own, &unknownTypeError{fmt.Sprintf("%T", obj), err}
	}
	for _, kind := range kinds {
		if kind == own {
			return kind, nil
		}
	}
	if len(kinds) > 1 {
		return own, fmt.Errorf("type %T is registered for %d kinds in the scheme; set apiVersion and kind", obj, len(kinds))
	}
	return kinds[0], nil
}

// untyped reports whether obj carries its kind in its data, not in its Go type.
func untyped(obj runtime.Object) bool {
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return true
	}
	return metadataOnly(obj)
}

func metadataOnly(obj runtime.Object) bool {
	_, ok := obj.(*metav1.PartialObjectMetadata)
	return ok
}

// private returns an error if the call would modify into and into is a shared object of
// the cache.
func (c *Client) private(at *call, into kube.Object) error {
	if s, ok := c.opts.Observer.(sharer); ok && !isNil(into) && s.Shares(into) {
		return at.wrap(&SharedObjectError{Kind: at.kind, Key: kube.KeyOf(into)})
	}
	return nil
}

func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// unknownTypeError replaces the text of an error of a scheme, which names a file of apimachinery.
type unknownTypeError struct {
	name  string
	cause error
}

func (e *unknownTypeError) Error() string {
	return "type " + e.name + " is not in the scheme; call AddToScheme of its package on the scheme that the client is made with"
}

func (e *unknownTypeError) Unwrap() error { return e.cause }
