// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

// foreignWrites are the annotations that requests on their way must not remove.
type foreignWrites struct {
	server *simulate.Server
	record *record
	mu     struct {
		sync.Mutex
		at map[storedKey]foreign
	}
}

// foreign is an annotation that was added to an object before a request for it was
// carried out.
type foreign struct {
	uid     types.UID
	text    string
	request int // the server's number of the request
}

type storedKey struct {
	kind schema.GroupResource
	key  types.NamespacedName
}

func newForeignWrites(server *simulate.Server, r *record) *foreignWrites {
	f := &foreignWrites{server: server, record: r}
	f.mu.at = map[storedKey]foreign{}
	return f
}

func (f *foreignWrites) expect(at storedKey, wrote foreign) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.at[at] = wrote
}

func (f *foreignWrites) expected(at storedKey) (wrote foreign, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wrote, known = f.mu.at[at]
	return wrote, known
}

// forget forgets the annotations of the objects, or of all if there are none.
func (f *foreignWrites) forget(of ...storedKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(of) == 0 {
		clear(f.mu.at)
	}
	for _, at := range of {
		delete(f.mu.at, at)
	}
}

// erased records that the request has removed a foreign annotation that its sender
// cannot have seen: the request arrived before the annotation was written.
func (f *foreignWrites) erased(r simulate.Request) {
	at := storedKey{r.Resource, r.Key}
	wrote, known := f.expected(at)
	if !known {
		return
	}
	is := storedAt(f.server, r.Resource, r.Key)
	gone := is == nil || is.GetUID() != wrote.uid
	kept := !gone && is.GetAnnotations()[annotationOf(foreignWrite)] == wrote.text
	if !gone && !kept && r.Number <= wrote.request && programOf(r.Client) != "" {
		f.record.add(Event{What: Erased, Who: r.Client, Name: r.Verb, Kind: kindText(r), Key: aim.KeyText(r.Key), Request: f.record.numbered(r)})
	}
	if !kept || r.Number == wrote.request {
		f.forget(at)
	}
}

// storedAt returns a stored object; nil: there is none.
func storedAt(s *simulate.Server, of schema.GroupResource, key types.NamespacedName) metav1.Object {
	return s.Object(of, key)
}
