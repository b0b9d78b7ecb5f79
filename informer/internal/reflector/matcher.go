// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

type membership uint8

const (
	Outside membership = iota
	Inside
	Undecided // only the server can evaluate the field selector
)

// Matcher evaluates a scope against objects.
type Matcher struct {
	Namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// NewMatcher parses the selectors of s.
func NewMatcher(s listwatch.Scope) (Matcher, error) {
	byLabel, err := labels.Parse(s.LabelSelector)
	if err != nil {
		return Matcher{}, fmt.Errorf("watch %s: parse label selector: %w", s, err)
	}
	byField, err := fields.ParseSelector(s.FieldSelector)
	if err != nil {
		return Matcher{}, fmt.Errorf("watch %s: parse field selector: %w", s, err)
	}
	return Matcher{Namespace: s.Namespace, labels: byLabel, fields: byField}, nil
}

// Match reports whether obj belongs to the scope. Only the fields metadata.name
// and metadata.namespace can be evaluated here. A namespace does not limit a
// cluster-scoped kind.
func (m Matcher) Match(obj kube.Object) membership {
	return m.MatchKey(kube.KeyOf(obj), labels.Set(obj.GetLabels()))
}

// MatchKey is Match of the object of that key and labels.
func (m Matcher) MatchKey(key kube.Key, has labels.Labels) membership {
	if ns := key.Namespace; m.Namespace != "" && ns != "" && ns != m.Namespace {
		return Outside
	}
	if !m.labels.Matches(has) {
		return Outside
	}
	known := fields.Set{"metadata.name": key.Name, "metadata.namespace": key.Namespace}
	result := Inside
	for _, r := range m.fields.Requirements() {
		if !known.Has(r.Field) {
			result = Undecided
			continue
		}
		equal := known[r.Field] == r.Value
		if equal == strings.HasPrefix(string(r.Operator), "!") {
			return Outside
		}
	}
	return result
}
