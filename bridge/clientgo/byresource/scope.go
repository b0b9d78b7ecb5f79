// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package byresource

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
)

// scopeOf returns what opts select, and the names of list options set by opts
// that do not select.
func scopeOf(opts Options) (scope informer.Scope, ignored []string) {
	if opts.Namespace != "" {
		scope.Namespaces = []string{opts.Namespace}
	}
	if opts.TweakListOptions == nil {
		return scope, nil
	}
	var list metav1.ListOptions
	opts.TweakListOptions(&list)
	scope.LabelSelector, scope.FieldSelector = list.LabelSelector, list.FieldSelector
	list.LabelSelector, list.FieldSelector = "", ""
	v := reflect.ValueOf(list)
	for field, value := range v.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && !value.IsZero() {
			ignored = append(ignored, name)
		}
	}
	slices.Sort(ignored)
	return scope, ignored
}
