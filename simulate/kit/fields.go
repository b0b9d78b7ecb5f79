// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

// fields says which fields of an object a write has changed. It tells no values, which
// may be secret.
type fields struct {
	server *simulate.Server
	mu     struct {
		sync.Mutex
		last  map[storedKey]map[string]any // content at the last look
		taken map[object]storedKey         // changes since then
	}
}

func newFields(server *simulate.Server) *fields {
	f := &fields{server: server}
	f.mu.last, f.mu.taken = map[storedKey]map[string]any{}, map[object]storedKey{}
	return f
}

// took takes note of a change, while the server's store is locked.
func (f *fields) took(c simulate.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.taken[object{c.Kind.String(), aim.KeyText(c.Key)}] = storedKey{c.Resource, c.Key}
}

// changed returns the fields that a change has changed; empty: none that count, or all
// of a new object.
func (f *fields) changed(e Event) string {
	f.mu.Lock()
	at, known := f.mu.taken[object{e.Kind, e.Key}]
	delete(f.mu.taken, object{e.Kind, e.Key})
	f.mu.Unlock()
	if !known {
		return ""
	}
	is, _ := storedAt(f.server, at.kind, at.key).(*unstructured.Unstructured)
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.mu.last[at]
	delete(f.mu.last, at)
	if is == nil {
		return ""
	}
	f.mu.last[at] = is.Object
	if was == nil || e.Name != "updated" {
		return ""
	}
	paths := differing(was, is.Object)
	if len(paths) > mostFields {
		paths = append(paths[:mostFields], "more")
	}
	return strings.Join(paths, ", ")
}

const mostFields = 6

// kept are the fields that the server keeps.
var keptFields = []string{"metadata.resourceVersion", "metadata.generation", "metadata.managedFields"}

// differing returns the paths of the fields that differ, without those that the server
// keeps. A list is one field.
func differing(was, is map[string]any) (out []string) {
	for _, c := range jsontree.Diff(was, is) {
		if field := c.Field(); !slices.Contains(keptFields, field) {
			out = append(out, field)
		}
	}
	return out
}
