// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// Get implements client.Reader.
func (c *kinds) Get(ctx context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(out, c.Scheme)
	if err != nil {
		return err
	}
	e, err := c.readable(ctx, id{kind, formOf(out)})
	if err != nil {
		return err
	}
	o := client.GetOptions{}
	o.ApplyOptions(opts)
	err = e.read(key, out, ptr.Deref(o.UnsafeDisableDeepCopy, false))
	if c.absent != nil && apierrors.IsNotFound(err) {
		if why := c.absent(ctx, e, key); why != nil {
			return why
		}
	}
	return err
}

// List implements client.Reader.
func (c *kinds) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(out, c.Scheme)
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	e, err := c.readable(ctx, id{kind, formOf(out)})
	if err != nil {
		return err
	}
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	return e.list(out, o)
}

// read copies the object of key into out. shared: its contents are not copied.
func (e *entry) read(key client.ObjectKey, out client.Object, shared bool) error {
	if !e.namespaced {
		key.Namespace = ""
	}
	if !e.covers(key.Namespace) {
		return fmt.Errorf("unable to get: %v because of unknown namespace for the cache", key)
	}
	obj, err := e.lister.Get(kube.Key(key))
	switch refused, ok := errors.AsType[*kube.UndecodableError](err); {
	case err == nil:
	case absent(err):
		return apierrors.NewNotFound(schema.GroupResource{Group: e.kind.Group, Resource: e.kind.Kind}, key.Name)
	case ok && refused.Refused && obj != nil: // the state that the transform accepted last
	default:
		return err
	}
	to, from := reflect.ValueOf(out), reflect.ValueOf(obj)
	if from.Type() != to.Type() {
		return fmt.Errorf("cache had type %s, but %s was asked for", from.Type(), to.Type())
	}
	if shared || e.shares(key.Namespace) {
		to.Elem().Set(from.Elem())
		return nil
	}
	to.Elem().Set(reflect.ValueOf(kube.Copy(obj)).Elem())
	out.GetObjectKind().SetGroupVersionKind(e.kind)
	return nil
}

// absent reports whether err means that no such object is cached.
func absent(err error) bool {
	_, outOfScope := errors.AsType[*kube.OutOfScopeError](err)
	_, misplaced := errors.AsType[*kube.NamespaceError](err)
	return outOfScope || misplaced || apierrors.IsNotFound(err)
}

// list writes the selected objects to out.
func (e *entry) list(out client.ObjectList, o client.ListOptions) error {
	if o.Continue != "" {
		return errors.New("continue list option is not supported by the cache")
	}
	if e.namespaced && o.Namespace != "" && !e.covers(o.Namespace) {
		return fmt.Errorf("unable to list: %v because of unknown namespace for the cache", o.Namespace)
	}
	found, err := e.query(o)
	if err != nil && !absent(err) {
		return err
	}
	items := make([]apiruntime.Object, len(found))
	inParallel(len(found), func(i int) {
		items[i] = found[i]
		if !ptr.Deref(o.UnsafeDisableDeepCopy, false) && !e.shares(found[i].GetNamespace()) {
			items[i] = kube.Copy(found[i])
			items[i].GetObjectKind().SetGroupVersionKind(e.kind)
		}
	})
	if err := meta.SetList(out, items); err != nil {
		return err
	}
	out.SetContinue("continue-not-supported")
	return nil
}

// inParallel calls do for 0 to n-1. Many calls are divided among the processors. A panic is the
// caller's.
func inParallel(n int, do func(i int)) {
	const least = 1024
	parts := max(1, min(runtime.GOMAXPROCS(0), n/least))
	panics := make([]any, parts)
	part := func(p int) {
		defer func() { panics[p] = recover() }()
		for i := n * p / parts; i < n*(p+1)/parts; i++ {
			do(i)
		}
	}
	var others sync.WaitGroup
	for p := 1; p < parts; p++ {
		others.Go(func() { part(p) })
	}
	part(0)
	others.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
}

// query returns the selected objects, shared.
func (e *entry) query(o client.ListOptions) ([]kube.Object, error) {
	q := informer.QueryOptions{Namespace: o.Namespace, Selector: o.LabelSelector}
	var further fields.Requirements
	if o.FieldSelector != nil {
		wanted := o.FieldSelector.Requirements()
		if !exact(wanted) {
			return nil, errors.New("non-exact field matches are not supported by the cache")
		}
		q.Index, q.IndexValue, further = indexOf(wanted[0].Field), wanted[0].Value, wanted[1:]
		for _, r := range wanted {
			_, err := e.lister.ByIndex(indexOf(r.Field), "")
			if _, pending := errors.AsType[*kube.NotSettledError](err); err != nil && !pending { // List asks only about its namespace
				return nil, fmt.Errorf("index with name %s does not exist: %w", indexOf(r.Field), err)
			}
		}
	}
	found, err := e.lister.List(q)
	if err != nil {
		return nil, err
	}
	for _, r := range further {
		found = slices.DeleteFunc(found, func(obj kube.Object) bool {
			values, err := e.lister.IndexValuesOf(indexOf(r.Field), obj)
			return err != nil || !slices.Contains(values, r.Value)
		})
	}
	if o.Limit > 0 && int64(len(found)) > o.Limit {
		found = found[:o.Limit]
	}
	return found, nil
}

// exact reports whether there are requirements, all for one value of a field.
func exact(rs fields.Requirements) bool {
	return len(rs) > 0 && !slices.ContainsFunc(rs, func(r fields.Requirement) bool {
		return r.Operator != selection.Equals && r.Operator != selection.DoubleEquals
	})
}
