// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdrules

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

const (
	// mostRuleCost bounds the estimated worst-case cost of one CEL rule.
	mostRuleCost = 10_000_000
	// mostSchemaCost bounds the cost of all rules of a schema together.
	mostSchemaCost = 100_000_000
	// shownCosts is how many rules an error about mostSchemaCost names.
	shownCosts = 4
)

// compile compiles the rules of one place and estimates their cost.
func (w *schemaWalk) compile(s *apiextensions.JSONSchemaProps, at spot) {
	path := at.path.Child("x-kubernetes-validations")
	typ := at.rules.typ()
	if typ == nil {
		w.celErrs = append(w.celErrs, field.InternalError(path, errors.New("internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations")))
		return
	}
	results, err := cel.Compile(at.rules.schema, typ, celconfig.PerCallLimit, CELEnvironment(), w.old)
	if err != nil {
		w.celErrs = append(w.celErrs, field.InternalError(path, err))
		return
	}
	for i, result := range results {
		w.compiled(s, i, result, at, path.Index(i))
	}
}

// CELEnvironment returns the environment in which rules are compiled.
var CELEnvironment = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// compiled reports the errors of one compiled rule.
func (w *schemaWalk) compiled(s *apiextensions.JSONSchemaProps, i int, result cel.CompilationResult, at spot, path *field.Path) {
	bad := func(err *field.Error) { w.celErrs = append(w.celErrs, err) }
	cost := times(result.MaxCost, cmp.Or(at.rules.times, result.MaxCardinality))
	w.cost(cost, "estimated rule cost", path.Child("rule"))
	if result.Error != nil {
		if result.Error.Type == apiservercel.ErrorTypeRequired {
			bad(field.Required(path.Child("rule"), result.Error.Detail))
		} else {
			bad(field.Invalid(path.Child("rule"), s.XValidations[i], result.Error.Detail))
		}
	}
	if result.MessageExpressionError != nil {
		bad(field.Invalid(path.Child("messageExpression"), s.XValidations[i], result.MessageExpressionError.Detail))
	} else if result.MessageExpression != nil {
		w.cost(result.MessageExpressionMaxCost, "estimated messageExpression cost", path.Child("messageExpression"))
	}
	if optional := s.XValidations[i].OptionalOldSelf; result.UsesOldSelf && at.unpaired != nil {
		bad(field.Invalid(path.Child("rule"), s.XValidations[i].Rule, fmt.Sprintf("oldSelf cannot be used on the uncorrelatable portion of the schema within %v", at.unpaired)))
	} else if !result.UsesOldSelf && optional != nil {
		bad(field.Invalid(path.Child("optionalOldSelf"), *optional, "may not be set if oldSelf is not used in rule"))
	}
}

func (w *schemaWalk) cost(cost uint64, of string, path *field.Path) {
	if !w.cheap && cost > mostRuleCost {
		w.celErrs = append(w.celErrs, field.Forbidden(path, tooDear(of, cost, mostRuleCost)))
	}
	w.total.add(path, cost)
}

// totalCost is the cost of all rules of a schema.
type totalCost struct {
	sum     uint64
	dearest []ruleCost
}

type ruleCost struct {
	path *field.Path
	cost uint64
}

func (t *totalCost) add(path *field.Path, cost uint64) {
	if t.sum += cost; t.sum < cost {
		t.sum = math.MaxUint64
	}
	if cost < mostSchemaCost/100 {
		return
	}
	t.dearest = append(t.dearest, ruleCost{path, cost})
	slices.SortStableFunc(t.dearest, func(a, b ruleCost) int { return cmp.Compare(b.cost, a.cost) })
	t.dearest = t.dearest[:min(len(t.dearest), shownCosts)]
}

// excess reports that the rules of the schema at path cost too much together.
func (t *totalCost) excess(path *field.Path) (errs field.ErrorList) {
	if t.sum <= mostSchemaCost {
		return nil
	}
	for _, each := range t.dearest {
		errs = append(errs, field.Forbidden(each.path, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"))
	}
	return append(errs, field.Forbidden(path, tooDear("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", t.sum, mostSchemaCost)))
}

func tooDear(what string, cost, most uint64) string {
	factor := float64(cost) / float64(most)
	text := fmt.Sprintf("%.1fx", factor)
	switch {
	case factor > 100:
		text = "more than 100x"
	case factor < 1.5:
		text = fmt.Sprintf("%fx", factor)
	}
	return fmt.Sprintf("%s exceeds budget by factor of %s (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)", what, text)
}
