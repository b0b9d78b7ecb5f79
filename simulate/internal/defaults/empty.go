// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"reflect"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Built-in kinds are stored as protobuf, which does not distinguish an empty list from an
// absent one. A list without omitempty, such as the rules of a Role, that was sent empty is
// therefore null in the answer.

// dropEmpty makes empty lists of a typed object nil where JSON would show them.
func dropEmpty(obj runtime.Object) {
	if _, ok := obj.(*apiextensionsv1.CustomResourceDefinition); !ok { // CRDs are stored as JSON
		dropEmptyIn(reflect.ValueOf(obj))
	}
}

func dropEmptyIn(v reflect.Value) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		plan := planOf(v.Type())
		for _, i := range plan.shown {
			if f := v.Field(i); f.Len() == 0 && !f.IsNil() {
				f.SetZero()
			}
		}
		for _, i := range plan.inner {
			dropEmptyIn(v.Field(i))
		}
	case reflect.Slice:
		if planOf(v.Type()).visit {
			for i := range v.Len() {
				dropEmptyIn(v.Index(i))
			}
		}
	}
}

// emptyPlan says where a type has lists that JSON shows when they are empty.
type emptyPlan struct {
	visit        bool  // there are some inside
	shown, inner []int // fields that are such lists, and fields that contain some
}

// emptyPlans caches the plan of each type. Types do not change.
var emptyPlans sync.Map

func planOf(t reflect.Type) *emptyPlan {
	if known, ok := emptyPlans.Load(t); ok {
		return known.(*emptyPlan)
	}
	plan := makePlan(t, map[reflect.Type]bool{})
	emptyPlans.Store(t, plan)
	return plan
}

// makePlan inspects t. inside are the types that contain it.
func makePlan(t reflect.Type, inside map[reflect.Type]bool) *emptyPlan {
	plan := &emptyPlan{}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if inside[t] {
		return plan
	}
	inside[t] = true
	defer delete(inside, t)
	switch t.Kind() {
	case reflect.Slice:
		plan.visit = makePlan(t.Elem(), inside).visit
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				continue
			}
			list := f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8
			if tag, ok := f.Tag.Lookup("json"); ok && list && tag != "-" && !strings.Contains(tag, ",omitempty") {
				plan.shown = append(plan.shown, i)
			}
			if makePlan(f.Type, inside).visit {
				plan.inner = append(plan.inner, i)
			}
		}
		plan.visit = len(plan.shown)+len(plan.inner) > 0
	}
	return plan
}
