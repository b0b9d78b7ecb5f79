// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// undeclared ends the error about a field that a kind does not have.
const undeclared = "field not declared in schema"

// alike makes the error of an apply deterministic. Of several unknown fields, the field
// manager names the first in the order of a Go map. alike names the first in alphabetical
// order.
func (q Writer) alike(err error, given map[string]any) error {
	head, _, typing := strings.Cut(err.Error(), "): ")
	if !typing || !strings.Contains(err.Error(), undeclared) {
		return err
	}
	rules, broken := q.Kind.Rules()
	if broken != nil || rules == nil {
		return err
	}
	if _, again := typed.AsTyped(inOrder{value.NewValueInterface(given)}, rules.Schema, rules.Root); again != nil {
		return errors.New(head + "): " + again.Error())
	}
	return err
}

// inOrder is a value whose maps are iterated in the order of their keys.
type inOrder struct{ value.Value }

// Format prints the value unchanged.
func (v inOrder) Format(f fmt.State, verb rune) {
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), v.Value)
}

// AsMapUsing implements value.Value.
func (v inOrder) AsMapUsing(a value.Allocator) value.Map { return mapInOrder{v.Value.AsMapUsing(a)} }

// AsListUsing implements value.Value.
func (v inOrder) AsListUsing(a value.Allocator) value.List {
	return listInOrder{v.Value.AsListUsing(a)}
}

type mapInOrder struct{ value.Map }

// IterateUsing implements value.Map.
func (m mapInOrder) IterateUsing(a value.Allocator, each func(string, value.Value) bool) bool {
	var keys []string
	m.Iterate(func(key string, _ value.Value) bool {
		keys = append(keys, key)
		return true
	})
	slices.Sort(keys)
	for _, key := range keys {
		if v, _ := m.GetUsing(a, key); !each(key, inOrder{v}) {
			return false
		}
	}
	return true
}

type listInOrder struct{ value.List }

// AtUsing implements value.List.
func (l listInOrder) AtUsing(a value.Allocator, i int) value.Value {
	return inOrder{l.List.AtUsing(a, i)}
}
