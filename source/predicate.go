// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"slices"

	"github.com/flyball-dev/flyball/kube"
)

// Predicate decides which events matter. Interests name changes, Where selects
// objects, When and Changed take functions; And, Or and Not combine them. A
// predicate cannot drop a deletion, a deletionTimestamp that appears, or a
// change of finalizers, owner references or UID of an object that Where admits;
// see the package comment.
type Predicate interface {
	// evaluate evaluates the change for obj, its old or its new object.
	evaluate(c change, obj kube.Object) verdict
	// check returns misuse of the predicate for objects.
	check(of objects) error
}

// objects are what an informer has.
type objects struct {
	like kube.Object // of their type
	kept []string    // their fields, as from Lister.Fields; nil: all
}

// verdict is one of three truth values, so that a change that must not be lost
// passes through Not, And and Or as neither a yes nor a no.
type verdict uint8

const (
	no verdict = iota
	maybe
	yes
)

func verdictOf(b bool) verdict {
	if b {
		return yes
	}
	return no
}

// change is an event as predicates see it.
type change struct {
	kube.Event[kube.Object]
	// vital: it must not be lost because of what changed.
	vital bool
}

// passes reports whether e passes p with the old or with the new object. Only
// no drops an event.
func passes(p Predicate, e kube.Event[kube.Object]) bool {
	c := change{e, vital(e)}
	known := states(e)
	if e.Type == kube.Undecoded {
		known = known[:1] // use the last decodable state
	}
	for _, obj := range known {
		if p.evaluate(c, obj) != no {
			return true
		}
	}
	return false
}

// Where passes the objects for which f returns true. An update passes if the
// old or the new object does, so that objects that leave are noticed. An object
// excluded before and after does not pass, not even with its deletion.
func Where[T kube.Object](f func(obj T) bool) Predicate { return where[T]{f} }

type where[T kube.Object] struct{ match func(T) bool }

func (w where[T]) evaluate(_ change, obj kube.Object) verdict {
	typed, ok := obj.(T)
	if !ok {
		return maybe
	}
	return verdictOf(w.match(typed))
}

func (w where[T]) check(of objects) error {
	return checkFunc[T]("Where", w.match == nil, of.like)
}

// When passes the events for which f returns true. Events that must not be lost
// pass without a call of f.
func When(f func(e kube.Event[kube.Object]) bool) Predicate { return when(f) }

type when func(e kube.Event[kube.Object]) bool

func (w when) evaluate(c change, _ kube.Object) verdict {
	if c.vital {
		return maybe
	}
	return verdictOf(w(c.Event))
}

func (w when) check(objects) error {
	if w == nil {
		return errors.New("the function of predicate When is nil; give it a func of the event, or leave the predicate out")
	}
	return nil
}

// And passes what all of ps pass. Without any it passes everything.
func And(ps ...Predicate) Predicate { return and(slices.Clone(ps)) }

type and []Predicate

func (a and) evaluate(c change, obj kube.Object) verdict {
	v := yes
	for _, p := range a {
		if v = min(v, p.evaluate(c, obj)); v == no {
			break
		}
	}
	return v
}

func (a and) check(of objects) error { return checkAll(a, of) }

// Or passes what one of ps passes.
func Or(ps ...Predicate) Predicate { return or(slices.Clone(ps)) }

type or []Predicate

func (o or) evaluate(c change, obj kube.Object) verdict {
	v := no
	for _, p := range o {
		if v = max(v, p.evaluate(c, obj)); v == yes {
			break
		}
	}
	return v
}

func (o or) check(of objects) error {
	if len(o) == 0 {
		return errors.New("predicate Or has no parts, so nothing could pass; name at least one")
	}
	return checkAll(o, of)
}

// Not passes what p does not. Of Where it passes the objects for which f
// returns false.
func Not(p Predicate) Predicate { return not{p} }

type not struct{ p Predicate }

func (n not) evaluate(c change, obj kube.Object) verdict { return yes - n.p.evaluate(c, obj) }

func (n not) check(of objects) error { return checkAll([]Predicate{n.p}, of) }

func checkAll(ps []Predicate, of objects) error {
	var errs []error
	for _, p := range ps {
		if p == nil {
			errs = append(errs, errors.New("a predicate is nil; leave it out"))
			continue
		}
		errs = append(errs, p.check(of))
	}
	return errors.Join(errs...)
}

func checkFunc[T kube.Object](name string, isNil bool, like kube.Object) error {
	if isNil {
		return fmt.Errorf("the function of predicate %s is nil; give it a func of the object, or leave the predicate out", name)
	}
	if _, ok := like.(T); !ok {
		return fmt.Errorf("predicate %s is for %T, but the informer's objects are %T", name, *new(T), like)
	}
	return nil
}
