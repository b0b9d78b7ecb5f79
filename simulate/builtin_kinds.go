// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	_ "embed"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtinTable is the kinds that are always there, one a line, in the order in
// which discovery tells of them: group and version, plural, kind, "ns" for a
// namespaced one, short names, categories, subresources, verbs if not all,
// singular if not the kind in lower case.
//
//go:embed builtin_kinds.txt
var builtinTable string

// allVerbs are those of a kind that is stored.
const allVerbs = "create,delete,deletecollection,get,list,patch,update,watch"

// builtins are the kinds that are always there. All servers of the process share
// their field managers, and so what these remember.
var builtins = sync.OnceValue(func() (out []Kind) {
	for line := range strings.Lines(builtinTable) {
		f := strings.Split(strings.TrimSpace(line), "|")
		gv, err := schema.ParseGroupVersion(f[0])
		if err != nil || len(f) != 9 {
			continue
		}
		k := Kind{
			GroupVersionKind: gv.WithKind(f[2]), Resource: f[1], Namespaced: f[3] == "ns",
			place: len(out) + 1, shortNames: split(f[4]), categories: split(f[5]), verbs: split(f[7]), singular: f[8],
		}
		for _, name := range split(f[6]) {
			k.subresources = append(k.subresources, k.subresource(name))
		}
		if k.hasSubresource("scale") {
			k.scale = builtinScale(k.Kind)
		}
		k.status = k.hasSubresource("status")
		k.managers, k.scaleManagers = newFieldManagers(), newFieldManagers()
		out = append(out, k)
	}
	return out
})

// installBuiltins serves them. Of a resource with several versions the first in
// the table is held.
func (s *Server) installBuiltins() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range builtins() {
		k := kind.completed()
		f := familyOf(k)
		if old := s.mu.families[k.resource()]; old != nil {
			f.versions, f.storage = append(old.versions, k), old.storage
		}
		s.installLocked(f)
	}
	s.joinEventsLocked()
	s.mu.families[autoscalers].convert = convertAutoscaler
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// builtinScale is where a kind that can be scaled keeps what is scaled.
func builtinScale(kind string) *scalePaths {
	s := &scalePaths{spec: []string{"spec", "replicas"}, status: []string{"status", "replicas"}, selector: []string{"spec", "selector"}, builtin: true}
	if kind == "ReplicationController" {
		s.plainSelector = true
	}
	return s
}
