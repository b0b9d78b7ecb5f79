// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"slices"
)

// With returns a view of the client whose calls use these options by default, each
// where it fits; options of a call override them. The view shares everything else with
// c: connection, Observer, discovery. With accepts FieldOwner, Force, DryRun,
// FieldValidation, Propagation, Limit, HandOver and InNamespace:
//
//	prod := c.With(client.InNamespace("prod"), client.FieldOwner("website"))
//
// A client that is limited to a namespace sends no request that concerns anything
// outside of it. Objects without a namespace are in that one; objects of another
// namespace or of cluster scope are errors. A further With cannot widen the limit. If
// an option is not accepted here, each call returns an error.
func (c *Client) With(opts ...Option) *Client {
	view := *c
	view.defaults = slices.Clone(c.defaults)
	for _, o := range opts {
		if err := prefer(&view, o); err != nil {
			view.misuse = errors.Join(view.misuse, fmt.Errorf("client.With: %w", err))
		}
	}
	return &view
}

func prefer(c *Client, o Option) error {
	if isNil(o) {
		return errors.New("an option is nil; leave it out")
	}
	switch o := o.(type) {
	case InNamespace:
		if o == "" || c.namespace != "" && string(o) != c.namespace {
			return fmt.Errorf("namespace %q, where the client is limited to %q; begin with the client that was made by New", string(o), c.namespace)
		}
		c.namespace = string(o)
		return nil
	case FieldOwner, Force, DryRun, FieldValidation, Propagation, Limit, HandOver:
		c.defaults = append(c.defaults, o)
		return o.set(&callOptions{})
	}
	return fmt.Errorf("option %T belongs to one call; give it there", o)
}

func (c *Client) confine(at *call) error {
	switch {
	case c.namespace == "" || at.key.Namespace == c.namespace && at.resource.namespaced:
		return nil
	case !at.resource.namespaced:
		return scopeError{fmt.Errorf("kind %s is cluster-scoped, and the client is limited to namespace %q", at.kind.Kind, c.namespace)}
	case at.key.Namespace != "":
		return fmt.Errorf("the client is limited to namespace %q", c.namespace)
	}
	at.key.Namespace = c.namespace
	return nil
}
