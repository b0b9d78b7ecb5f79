// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/fielddiff"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
)

// rivals are those who have made changes that a run has undone, by object and field, as
// "Deployment shop/web spec.replicas".
type rivals map[string]string

// name sets who it is in a Fight.
func (r rivals) name(found []Finding) {
	for i := range found {
		if f := &found[i]; f.Kind == Fight && f.By == "" {
			f.By = r[f.Object+" "+f.Fields[0]]
		}
	}
}

// undoes reports whether the run has changed a field that another client had changed just before, in
// an object of one kind.
func (r *record) undoes() bool {
	undone := false
	r.eachUndone(func(*source.Cause, string) { undone = true })
	return undone
}

// eachUndone calls do with each field that the run has changed, and another client just before.
func (r *record) eachUndone(do func(by *source.Cause, field string)) {
	if !r.caused {
		return
	}
	causes := []*source.Cause{&r.first}
	if r.merged != nil {
		causes = append(causes, &r.merged.last)
	}
	for _, c := range causes {
		if !isForeign(c) {
			continue
		}
		theirs, _ := c.Changed()
		for i := range r.requests {
			q := &r.requests[i]
			if q.fields.length == 0 || r.textOf(q.kind) != c.Kind.Kind {
				continue
			}
			for field := range strings.SplitSeq(r.textOf(q.fields), "\n") {
				if slices.Contains(theirs, field) {
					do(c, field)
				}
			}
		}
	}
}

// rivals returns who has made the changes that the run has undone. It asks a cache, which keeps what
// it needs to answer only from the first question about an object on.
func (r *record) rivals(cache contextvalues.Cache) rivals {
	owned, ok := cache.(interface {
		FieldOwners(kind schema.GroupKind, key kube.Key, version kube.Version) []metav1.ManagedFieldsEntry
	})
	if !ok {
		return nil
	}
	by := rivals{}
	r.eachUndone(func(c *source.Cause, field string) {
		if name := ownersIn(owned.FieldOwners(c.Kind, c.Object, c.Version), field); name != "" {
			by[c.Kind.Kind+" "+keyText(c.Object)+" "+field] = name
		}
	})
	return by
}

// ownersIn returns the managers of a field, such as "kubectl-edit (Update at 2026-11-30T04:00:00Z)".
func ownersIn(entries []metav1.ManagedFieldsEntry, field string) string {
	var all []string
	for i := range entries {
		e := &entries[i]
		if e.FieldsV1 == nil || !fielddiff.Owns(e.FieldsV1.GetRawBytes(), field) {
			continue
		}
		text := cut(e.Manager, longestKind) + " (" + string(e.Operation)
		if e.Subresource != "" {
			text += " of " + cut(e.Subresource, longestKind)
		}
		if e.Time != nil {
			text += fmt.Sprintf(" at %s", e.Time.UTC().Format(time.RFC3339))
		}
		all = append(all, text+")")
	}
	return strings.Join(all, ", ")
}
