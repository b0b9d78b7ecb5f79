// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	_ "embed"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/ownership"
)

// builtinTable lists the built-in kinds, one per line, in the order of discovery: group and
// version, plural, kind, "ns" for a namespaced one, short names, categories, subresources,
// verbs if not all, singular if not the kind in lower case.
//
//go:embed builtin_kinds.txt
var builtinTable string

// allVerbs are the verbs of a kind that is stored.
const allVerbs = "create,delete,deletecollection,get,list,patch,update,watch"

// builtins returns the built-in kinds. All servers of the process share their field
// managers, and what these remember.
var builtins = sync.OnceValue(func() (out []Kind) {
	for line := range strings.Lines(builtinTable) {
		f := strings.Split(strings.TrimSpace(line), "|")
		gv, err := schema.ParseGroupVersion(f[0])
		if err != nil || len(f) != 9 {
			continue
		}
		k := Kind{
			GroupVersionKind: gv.WithKind(f[2]), Resource: f[1], Namespaced: f[3] == "ns",
			Place: len(out) + 1, ShortNames: split(f[4]), Categories: split(f[5]), Verbs: split(f[7]), Singular: f[8],
		}
		for _, name := range split(f[6]) {
			k.Subresources = append(k.Subresources, k.subresource(name))
		}
		if k.HasSubresource("scale") {
			k.Scale = builtinScale(k.Kind)
		}
		k.Status = k.HasSubresource("status")
		k.Managers, k.ScaleManagers = ownership.NewFieldManagers(), ownership.NewFieldManagers()
		out = append(out, k)
	}
	return out
})

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// builtinScale returns the paths of the scale subresource of a built-in kind.
func builtinScale(kind string) *scalePaths {
	s := &scalePaths{Spec: []string{"spec", "replicas"}, Status: []string{"status", "replicas"}, Selector: []string{"spec", "selector"}, Builtin: true}
	if kind == "ReplicationController" {
		s.PlainSelector = true
	}
	return s
}
