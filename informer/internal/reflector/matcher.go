// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/shards"
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
	by        shards.By
	holder    *shards.Holder // nil: all shards
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
	return Matcher{Namespace: s.Namespace, labels: byLabel, fields: byField, by: s.Division.By, holder: shards.HolderOf(s.Division)}, nil
}

// Match reports whether obj belongs to the scope. Only the fields metadata.name
// and metadata.namespace can be evaluated here. A namespace does not limit a
// cluster-scoped kind.
func (m Matcher) Match(obj kube.Object) membership {
	if m.IsForeign(kube.KeyOf(obj), obj.GetUID(), obj) {
		return Outside
	}
	return m.MatchKey(kube.KeyOf(obj), labels.Set(obj.GetLabels()))
}

// IsForeign reports whether an object is of a shard that is not held. obj is nil if only its key
// and UID are known, which do not tell the shard by the owner.
func (m Matcher) IsForeign(key kube.Key, uid types.UID, obj kube.Object) bool {
	switch {
	case m.holder == nil:
		return false
	case m.by == shards.Namespace:
		return !m.holder.HasString(key.Namespace)
	case m.by == shards.UID:
		return uid != "" && !m.holder.HasString(string(uid))
	case obj == nil:
		return false
	}
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
		uid = owner.UID
	}
	return uid != "" && !m.holder.HasString(string(uid))
}

// MatchKey is Match of the object of that key and labels, in any shard.
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
