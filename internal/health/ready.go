// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/informer/state"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConvertedHere is why waiting for a kind does not count: a process that is not ready
// receives no conversion requests, so it would wait for itself.
const ConvertedHere = "this process converts what it waits for"

// InformerChecks returns one check per kind, which all informers of the kind share.
func InformerChecks(informers []state.Informer, converted func(schema.GroupKind) bool) []Check {
	var names []string
	passing := map[string]string{}
	reasons := map[string][]string{}
	for _, i := range informers {
		name := "informer/" + i.Kind.GroupKind().String()
		if !slices.Contains(names, name) {
			names = append(names, name)
			if converted(i.Kind.GroupKind()) {
				passing[name] = ConvertedHere
			}
		}
		reasons[name] = append(reasons[name], unsynced(i)...)
	}
	var checks []Check
	for _, name := range names {
		var err error
		if len(reasons[name]) > 0 {
			err = errors.New("not synced " + strings.Join(reasons[name], "; "))
		}
		c := Answered(name, err)
		c.Passing = passing[name]
		checks = append(checks, c)
	}
	return checks
}

// unsynced describes each scope of i that has not synced: its state, since when and
// why.
func unsynced(i state.Informer) []string {
	var out []string
	for _, s := range i.Scopes {
		if !s.Synced {
			out = append(out, s.String())
		}
	}
	if len(out) == 0 && !i.Synced {
		out = append(out, "yet")
	}
	return out
}
