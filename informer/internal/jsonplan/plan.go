// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/share"
	"github.com/flyball-dev/flyball/internal/decodelimit"
)

// Plan decodes objects of one type. Make it with Compile. Safe for concurrent
// use.
type Plan struct {
	typ     reflect.Type
	sel     *fields.Set
	managed bool // keep metadata.managedFields
	root    *node
	grove   grove
	runs    sync.Pool
}

// Options are those of one Decode. The zero value shares nothing.
type Options struct {
	// Table has the parts that objects have in common; nil: none.
	Table *share.Table
	// StringsOnly shares only strings, for objects whose owner may change them.
	StringsOnly bool
}

// Sizes are bytes of heap, rounded as the allocator does.
type Sizes struct {
	Own    uint32 // allocated for this object alone
	Shared uint32 // of parts in the table
}

var treeType = reflect.TypeFor[unstructured.Unstructured]()

// Compile returns the plan of t, a struct type: of API objects, or
// unstructured.Unstructured. The plan keeps the fields in sel; nil: all. Without
// managed it leaves out metadata.managedFields. An error means that t cannot be
// decoded by plan exactly as the reference does.
func Compile(t reflect.Type, sel *fields.Set, managed bool) (*Plan, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("compile plan of %s: not a struct", t)
	}
	p := &Plan{typ: t, sel: sel, managed: managed}
	p.runs.New = func() any { return &run{plan: p} }
	if t == treeType {
		p.root = &node{form: formTree, typ: reflect.TypeFor[map[string]any](), tree: &branch{sel: sel}}
		if !managed {
			p.grove.withoutManagedFields(p.root.tree)
		}
		return p, nil
	}
	c := &compiler{records: map[recordOf]*record{}}
	root, err := c.node(t, sel, true)
	if err != nil {
		return nil, fmt.Errorf("compile plan of %s: %w", t, err)
	}
	if root.form != formRecord {
		return nil, fmt.Errorf("compile plan of %s: it has its own decoding", t)
	}
	if p.root = root; !managed {
		withoutManagedFields(root.record)
	}
	return p, nil
}

// Decode decodes raw into the value that into points to, which is of the plan's
// type and zero. The value does not share memory with raw. After an error, which
// is that of the reference, its contents are undefined.
func (p *Plan) Decode(raw []byte, into any, opts Options) (Sizes, error) {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.Type().Elem() != p.typ || v.IsNil() {
		return Sizes{}, fmt.Errorf("decode %T: not a pointer to %s", into, p.typ)
	}
	if sizes, ok := p.decode(raw, v, opts); ok {
		return sizes, nil
	}
	v.Elem().SetZero()
	err := reference(raw, into)
	fields.Prune(into, p.sel)
	if !p.managed {
		dropManagedFields(into)
	}
	return Sizes{}, err
}

// decode reports whether the plan decoded raw.
func (p *Plan) decode(raw []byte, v reflect.Value, opts Options) (Sizes, bool) {
	r := p.runs.Get().(*run)
	defer r.end()
	r.b, r.table, r.whole = raw, opts.Table, opts.Table != nil && !opts.StringsOnly
	r.sizes.Own = sized(int(p.typ.Size()))
	i := r.value(p.root, v.UnsafePointer(), space(raw, 0))
	if i < 0 || space(raw, i) != len(raw) {
		return Sizes{}, false
	}
	r.keepLoans(0)
	return r.sizes, true
}

// most is how much room a run keeps for the next.
const most = 4 << 10

// end makes r ready for another decoding.
func (r *run) end() {
	next := run{plan: r.plan, loans: kept(r.loans), pairs: kept(r.pairs), items: kept(r.items), unquoted: kept(r.unquoted)}
	*r = next
	r.plan.runs.Put(r)
}

// kept returns s without its elements, nil if it has become large.
func kept[E any](s []E) []E {
	if cap(s) > most {
		return nil
	}
	clear(s)
	return s[:0]
}

// reference decodes raw as the decoder of sigs.k8s.io/json does, unless that would
// cost too much.
func reference(raw []byte, into any) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		// The UnmarshalJSON of Unstructured reads the text twice, to detect a
		// list.
		return kjson.UnmarshalCaseSensitivePreserveInts(raw, &u.Object)
	}
	if err := decodelimit.CostlyPlanOf(reflect.TypeOf(into)).JSON(raw); err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, into)
}

func dropManagedFields(obj any) {
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		if metadata, ok := obj.Object["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
		}
	case metav1.Object:
		obj.SetManagedFields(nil)
	}
}
