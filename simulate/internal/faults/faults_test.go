// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

func TestRequests_EachLossHappensOnce(t *testing.T) {
	pod, lease := schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}
	var f Requests
	f.LoseResponse(1)
	f.LoseResponseOf(lease)
	f.LoseResponseTo(7, pod)
	for n, step := range []struct {
		number int
		kind   schema.GroupKind
		want   bool
	}{{5, lease, true}, {6, pod, true}, {6, pod, false}, {6, lease, false}, {7, pod, true}, {8, pod, false}} {
		if got := f.LosesResponse(step.number, step.kind); got != step.want {
			t.Errorf("%d. the answer to request %d for a %s is lost: %v, want %v", n, step.number, step.kind.Kind, got, step.want)
		}
	}
	f.LoseResponseTo(9, pod)
	f.Over(9) // which stored nothing
	if !f.LosesResponse(10, pod) {
		t.Error("no answer is lost when the request stored nothing; want that of the next write of its kind")
	}
}

func TestRequests_RefusalsEndAfterTheirTimesAndByHeal(t *testing.T) {
	var f Requests
	a := access.Attributes{Verb: "create", Resource: "pods"}
	refused := func(writes bool) bool { return f.Refused(a, schema.GroupVersionKind{Kind: "Pod"}, writes) != nil }
	f.Reject(pods, 1, 500)
	if refused(false) || !refused(true) || refused(true) {
		t.Error("Reject refuses a read, or does not refuse exactly one write")
	}
	f.Overload(-1, 429, 1)
	f.Deny("create", pods, true)
	f.ExpireContinue(1)
	f.AcceptTokens("a")
	f.DamageList(pods, Garbage)
	for range 3 {
		if err := f.Overloaded(0); !apierrors.IsTooManyRequests(err) {
			t.Fatalf("got %v, want 429 until Heal", err)
		}
	}
	if !refused(true) {
		t.Error("a denied verb passes")
	}
	f.Heal()
	if _, gated := f.Accepts("b"); gated || refused(true) || f.Overloaded(0) != nil || f.ContinueExpired() || f.ListDamage(pods) != "" {
		t.Error("a fault outlives Heal")
	}
}

func TestObjects_CorruptedFieldsAreRestoredUnlessWritten(t *testing.T) {
	var o Objects
	was := &object.Object{Fields: map[string]any{"metadata": map[string]any{"name": "a", "uid": "1"}, "spec": "s", "data": "d"}}
	now := o.Corrupt(pods, was)
	if now.Fields["spec"] != corrupt || !now.Corrupt || was.Fields["spec"] != "s" {
		t.Fatalf("got %v of %v, want a corrupted copy", now.Fields, was.Fields)
	}
	if seen := o.Sound(&kinds.Kind{Resource: "pods"}, now); seen.Fields["spec"] != "s" || seen.Corrupt {
		t.Errorf("Sound returns %v, want what was there before", seen.Fields)
	}
	now.Fields["data"] = "new"
	all := o.Heal()
	if len(all) != 1 || all[0].NamespacedName != (types.NamespacedName{Name: "a"}) {
		t.Fatalf("Heal returns %v, want the corrupted object", all)
	}
	if restored := all[0].Restored(now); restored.Fields["spec"] != "s" || restored.Fields["data"] != "new" {
		t.Errorf("restored %v, want the old spec and the new data", restored.Fields)
	}
	other := &object.Object{Fields: map[string]any{"metadata": map[string]any{"name": "a", "uid": "2"}}}
	if all[0].Restored(other) != nil || all[0].Restored(nil) != nil {
		t.Error("another object under the name is restored")
	}
}
