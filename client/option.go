// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/kube"
)

// Option adjusts one call. A call with an option that does not fit it fails before any
// request.
type Option interface {
	fits() verb
	set(*callOptions) error
}

// callOptions is the sum of the options of one call.
type callOptions struct {
	fieldOwner      string
	dryRun          bool
	force           bool
	ifChanged       bool
	confirm         func(context.Context) error // nil: none
	handOver        []string
	fieldValidation FieldValidation
	preconditions   Preconditions
	propagation     metav1.DeletionPropagation
	gracePeriod     *int64
	namespace       string
	labels          labels.Selector
	fields          fields.Selector
	limit           int64
	since           string
	kind            schema.GroupVersionKind
	body            kube.Object
}

// FieldOwner is the owner of the written fields (fieldManager in the API). Fits create,
// update, patch and apply; apply requires one.
type FieldOwner string

// DryRun makes the server validate and admit the write without storing it. Fits all
// writes.
type DryRun struct{}

// Force takes over fields that another owner holds. Fits apply.
type Force struct{}

// FieldValidation sets how the server treats unknown and duplicate fields. Fits create,
// update, patch and apply.
type FieldValidation string

const (
	// Strict rejects the write.
	Strict FieldValidation = "Strict"
	// Warn drops the field and returns a warning, which is logged.
	Warn FieldValidation = "Warn"
	// Ignore drops the field.
	Ignore FieldValidation = "Ignore"
)

// HandOver makes an apply the owner of all that the named field owners have written by Create,
// Update or Patch, so that it removes what obj does not have: for a program that wrote by
// Update, and now applies. Otherwise such fields stay for ever. It looks at each object
// before the first apply that is sent, once per process, which costs a read and the right to get,
// and if there is something to hand over a patch of managedFields. It is not reversible. Name
// no owner that still writes the object by Update: the next process would take its fields.
// A dry run hands over nothing. Fits apply.
//
//	children := reconcile.NewChildSet(mgr.Client().With(client.HandOver{"manager"}), …)
type HandOver []string

func (HandOver) fits() verb { return verbApply }

func (o HandOver) set(c *callOptions) error {
	c.handOver = o
	if slices.Contains(o, "") {
		return errors.New("a field owner to hand over from is empty")
	}
	return nil
}

// Preconditions must hold for the object on the server; otherwise the write fails with
// a conflict. Empty fields are not checked. Fits patch, apply, delete and evict; an
// update uses the uid and resourceVersion of the object itself.
type Preconditions struct {
	UID             types.UID
	ResourceVersion string
}

// Propagation sets what happens to the dependents of a deleted object: Background,
// Foreground or Orphan, the values of metav1.DeletePropagation…. Fits delete,
// deleteAllOf and evict.
type Propagation metav1.DeletionPropagation

// GracePeriod is the time before a deleted object is removed, in whole seconds; 0
// removes it at once. Kinds without graceful deletion ignore it. Fits delete,
// deleteAllOf and evict.
type GracePeriod time.Duration

// InNamespace limits a list, watch or deleteAllOf to one namespace. In Client.With it
// limits all calls.
type InNamespace string

// MatchingLabels limits a list, watch or deleteAllOf to objects with all these labels.
type MatchingLabels map[string]string

// MatchingSelector limits a list, watch or deleteAllOf to objects that the label
// selector matches.
type MatchingSelector struct{ labels.Selector }

// MatchingFields limits a list, watch or deleteAllOf to objects whose fields have these
// values. The server determines which fields of a kind can be selected.
type MatchingFields map[string]string

// Limit is the number of objects per page of a list; 0: 500.
type Limit int64

// OfKind sets the kind of a list, watch or deleteAllOf whose Go type does not determine
// it: *unstructured.Unstructured and *metav1.PartialObjectMetadata.
type OfKind schema.GroupVersionKind

// Body is the content of an update of a subresource whose kind differs from the
// object's, such as a Scale. The answer is stored in it.
type Body struct{ kube.Object }

const (
	fieldWrites = verbCreate | verbUpdate | verbPatch | verbApply
	deletes     = verbDelete | verbDeleteAllOf | verbEvict
	selections  = verbList | verbDeleteAllOf | verbWatch
)

func (FieldOwner) fits() verb       { return fieldWrites }
func (DryRun) fits() verb           { return fieldWrites | deletes }
func (Force) fits() verb            { return verbApply }
func (FieldValidation) fits() verb  { return fieldWrites }
func (Preconditions) fits() verb    { return verbPatch | verbApply | verbDelete | verbEvict }
func (Propagation) fits() verb      { return deletes }
func (GracePeriod) fits() verb      { return deletes }
func (InNamespace) fits() verb      { return selections }
func (MatchingLabels) fits() verb   { return selections }
func (MatchingSelector) fits() verb { return selections }
func (MatchingFields) fits() verb   { return selections }
func (Limit) fits() verb            { return verbList }
func (OfKind) fits() verb           { return selections }
func (Body) fits() verb             { return verbUpdate }

func (o FieldOwner) set(c *callOptions) error    { c.fieldOwner = string(o); return nil }
func (DryRun) set(c *callOptions) error          { c.dryRun = true; return nil }
func (Force) set(c *callOptions) error           { c.force = true; return nil }
func (p Preconditions) set(c *callOptions) error { c.preconditions = p; return nil }
func (o InNamespace) set(c *callOptions) error   { c.namespace = string(o); return nil }
func (o OfKind) set(c *callOptions) error        { c.kind = schema.GroupVersionKind(o); return nil }

func (o FieldValidation) set(c *callOptions) error {
	c.fieldValidation = o
	return o.check()
}

func (o FieldValidation) check() error {
	switch o {
	case "", Strict, Warn, Ignore:
		return nil
	}
	return fmt.Errorf("field validation %q is none of Strict, Warn, Ignore", string(o))
}

func (o Propagation) set(c *callOptions) error {
	c.propagation = metav1.DeletionPropagation(o)
	switch c.propagation {
	case metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
		return nil
	}
	return fmt.Errorf("propagation %q is none of Background, Foreground, Orphan", string(o))
}

func (o GracePeriod) set(c *callOptions) error {
	d := time.Duration(o)
	if d < 0 || d%time.Second != 0 {
		return fmt.Errorf("grace period %s is not a whole number of seconds from 0", d)
	}
	seconds := int64(d / time.Second)
	c.gracePeriod = &seconds
	return nil
}

func (o MatchingLabels) set(c *callOptions) error {
	selector, err := labels.ValidatedSelectorFromSet(labels.Set(o))
	if err != nil {
		return fmt.Errorf("labels to match: %w", err)
	}
	return c.match(selector)
}

func (o MatchingSelector) set(c *callOptions) error {
	if o.Selector == nil {
		return errors.New("the label selector to match is nil; leave the option out to match all")
	}
	return c.match(o.Selector)
}

// match adds a label selector; several must all match.
func (c *callOptions) match(selector labels.Selector) error {
	requirements, selectable := selector.Requirements()
	switch {
	case !selectable:
		return errors.New("the label selector matches nothing")
	case c.labels == nil:
		c.labels = selector
	default:
		c.labels = c.labels.Add(requirements...)
	}
	return nil
}

func (o MatchingFields) set(c *callOptions) error {
	selector := fields.SelectorFromSet(fields.Set(o))
	if c.fields != nil {
		selector = fields.AndSelectors(c.fields, selector)
	}
	c.fields = selector
	return nil
}

func (o Limit) set(c *callOptions) error {
	if o < 0 {
		return fmt.Errorf("limit %d is negative", o)
	}
	c.limit = int64(o)
	return nil
}

func (o Body) set(c *callOptions) error {
	if isNil(o.Object) {
		return errors.New("the body is nil")
	}
	c.body = o.Object
	return nil
}

// collect applies the options of a call over the defaults of the client.
func (c *Client) collect(v verb, options []Option) (callOptions, error) {
	all := callOptions{
		fieldOwner:      c.opts.FieldOwner,
		dryRun:          c.opts.DryRun,
		fieldValidation: c.opts.FieldValidation,
	}
	if c.misuse != nil {
		return all, c.misuse
	}
	for _, o := range c.defaults {
		if o.fits()&v == 0 {
			continue
		}
		if err := o.set(&all); err != nil {
			return all, err
		}
	}
	for _, o := range options {
		if isNil(o) {
			return all, errors.New("an option is nil; leave it out")
		}
		if o.fits()&v == 0 {
			return all, fmt.Errorf("option %T does not fit %s; leave it out", o, v)
		}
		if err := o.set(&all); err != nil {
			return all, err
		}
	}
	return all, nil
}
