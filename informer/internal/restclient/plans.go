// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"reflect"
	"sync"

	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/jsonplan"
	"github.com/flyball-dev/flyball/informer/internal/protoplan"
	"github.com/flyball-dev/flyball/informer/internal/share"
)

// plans are the compiled plans of the decoders of one factory, and the table of
// the parts that their objects share. Safe for concurrent use.
type plans struct {
	table *share.Table
	proto protoplan.Plans
	mu    struct {
		sync.Mutex
		json map[planOf]func() *jsonplan.Plan
	}
}

// planOf is what a plan depends on.
type planOf struct {
	object  reflect.Type
	part    bool   // only fields are kept
	fields  string // that are kept
	managed bool   // managedFields are kept
}

func newPlans() *plans {
	p := &plans{table: share.NewTable()}
	p.mu.json = make(map[planOf]func() *jsonplan.Plan)
	return p
}

// json returns the plan for JSON of objects of t, or nil if there is none.
func (p *plans) json(t reflect.Type, sel *fields.Set, managed bool) *jsonplan.Plan {
	of := planOf{object: t, managed: managed}
	if sel != nil {
		of.part, of.fields = true, sel.String()
	}
	return p.compiled(of, sel)()
}

// compiled returns what returns the plan.
func (p *plans) compiled(of planOf, sel *fields.Set) func() *jsonplan.Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	plan, known := p.mu.json[of]
	if !known {
		plan = sync.OnceValue(func() *jsonplan.Plan {
			plan, err := jsonplan.Compile(of.object, sel, of.managed)
			if err != nil {
				return nil // by the reference
			}
			return plan
		})
		p.mu.json[of] = plan
	}
	return plan
}

// protobuf returns the plan for protobuf of objects of t, or nil if there is
// none.
func (p *plans) protobuf(t reflect.Type, sel *fields.Set) *protoplan.Plan {
	plan, err := p.proto.Of(t, sel)
	if err != nil {
		return nil // by the type's own method
	}
	return plan
}
