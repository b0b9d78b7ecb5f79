// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/reconcile"
)

func TestConditions_ChangeOnlyWithWhatTheySay_R7(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 999)
	other := metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, Reason: "A", LastTransitionTime: metav1.NewTime(early)}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Waiting", Message: "for pods", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(early)}
	last := metav1.Condition{Type: "Last", Status: metav1.ConditionUnknown, Reason: "B", LastTransitionTime: metav1.NewTime(early)}
	was := []metav1.Condition{other, ready, last}
	with := func(change func(*metav1.Condition)) []metav1.Condition {
		list := slices.Clone(was)
		change(&list[1])
		return list
	}
	at := metav1.NewTime(time.Unix(200, 0))
	for _, row := range []struct {
		name       string
		generation int64
		set        func(reconcile.Conditions) bool
		changed    bool
		want       []metav1.Condition
	}{
		{"the same", 3, func(c reconcile.Conditions) bool { return c.False("Ready", "Waiting", "for pods") }, false, was},
		{"another message", 3, func(c reconcile.Conditions) bool { return c.False("Ready", "Waiting", "for more") }, true,
			with(func(c *metav1.Condition) { c.Message = "for more" })},
		{"another reason", 3, func(c reconcile.Conditions) bool { return c.False("Ready", "Failing", "for pods") }, true,
			with(func(c *metav1.Condition) { c.Reason = "Failing" })},
		{"another generation", 4, func(c reconcile.Conditions) bool { return c.False("Ready", "Waiting", "for pods") }, true,
			with(func(c *metav1.Condition) { c.ObservedGeneration = 4 })},
		{"another status", 3, func(c reconcile.Conditions) bool { return c.True("Ready", "Waiting", "for pods") }, true,
			with(func(c *metav1.Condition) { c.Status, c.LastTransitionTime = metav1.ConditionTrue, at })},
		{"unknown", 3, func(c reconcile.Conditions) bool { return c.Unknown("Ready", "Waiting", "for pods") }, true,
			with(func(c *metav1.Condition) { c.Status, c.LastTransitionTime = metav1.ConditionUnknown, at })},
		{"time and generation of its own", 3, func(c reconcile.Conditions) bool {
			own := ready
			own.ObservedGeneration, own.LastTransitionTime = 9, at
			return c.Set(own)
		}, false, was},
		{"a new one", 3, func(c reconcile.Conditions) bool { return c.True("New", "C", "") }, true,
			append(slices.Clone(was), metav1.Condition{Type: "New", Status: metav1.ConditionTrue, Reason: "C", ObservedGeneration: 3, LastTransitionTime: at})},
		{"one less", 3, func(c reconcile.Conditions) bool { return c.Remove("Ready") }, true, []metav1.Condition{other, last}},
		{"none less", 3, func(c reconcile.Conditions) bool { return c.Remove("None") }, false, was},
	} {
		t.Run(row.name, func(t *testing.T) {
			list := slices.Clone(was)
			obj := deployment("a", func(d *appsv1.Deployment) { d.Generation = row.generation })
			if changed := row.set(reconcile.ConditionsOf(obj, &list, late)); changed != row.changed {
				t.Errorf("said changed %v, want %v: what has not changed is not written", changed, row.changed)
			}
			if !reflect.DeepEqual(list, row.want) {
				t.Errorf("got %v\nwant %v", list, row.want)
			}
		})
	}
}

func TestConditions_MessageIsOneThatTheAPITakes_R7(t *testing.T) {
	for _, message := range []string{strings.Repeat("ä", 20000), strings.Repeat("x", 40000), "\xff\xfe"} {
		var list []metav1.Condition
		c := reconcile.ConditionsOf(deployment("a"), &list, time.Unix(1, 0))
		c.False("Ready", "Failing", message)
		if got := list[0].Message; len(got) > 32768 || !utf8.ValidString(got) || len(message) > 32768 && !strings.HasSuffix(got, "…") {
			t.Errorf("of %d bytes %d were kept, valid: %v", len(message), len(got), utf8.ValidString(got))
		}
		if c.False("Ready", "Failing", message) {
			t.Error("the same message is news; it would be written forever")
		}
	}
	if !reconcile.ConditionsOf(deployment("a"), nil, time.Unix(1, 0)).True("Ready", "A", "") {
		t.Error("a missing list is an empty one")
	}
}

// FuzzConditions_SetTwiceIsSetOnce_R7 compares them with the definition: one of each type, in the order
// of first use, and a time that changes only with the status.
func FuzzConditions_SetTwiceIsSetOnce_R7(f *testing.F) {
	f.Add("ABA", "TFU", "xyx")
	f.Fuzz(func(t *testing.T, types, statuses, reasons string) {
		var list []metav1.Condition
		var order []string
		for i, kind := range strings.Split(types, "") {
			if i >= len(statuses) || i >= len(reasons) {
				break
			}
			status := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}[statuses[i]%3]
			c := reconcile.ConditionsOf(deployment("a"), &list, time.Unix(int64(i), 0))
			before := metav1.Condition{}
			if is := c.Get(kind); is != nil {
				before = *is
			} else {
				order = append(order, kind)
			}
			c.Set(metav1.Condition{Type: kind, Status: status, Reason: reasons[i : i+1]})
			after := *c.Get(kind)
			if moved := after.LastTransitionTime != before.LastTransitionTime; before.Type != "" && moved != (before.Status != status) {
				t.Errorf("%v became %v: the time moves with the status and only then", before, after)
			}
			if c.Set(metav1.Condition{Type: kind, Status: status, Reason: reasons[i : i+1]}) {
				t.Errorf("%v set twice is news twice", after)
			}
		}
		var got []string
		for _, c := range list {
			got = append(got, c.Type)
		}
		if !slices.Equal(got, order) {
			t.Errorf("in the order %q, want %q", got, order)
		}
	})
}

// A failure shows in the condition if it is about the object, and passing trouble does not.
func TestConditions_FailedTellsWhatIsAboutTheObject(t *testing.T) {
	invalid := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", field.ErrorList{
		field.Invalid(field.NewPath("spec", "replicas"), -1, "must not be negative"),
	})
	deployments := appsv1.Resource("deployments")
	tooMany := apierrors.NewTooManyRequests("later", 1)
	conflict := apierrors.NewConflict(deployments, "web", errors.New("the object has been modified"))
	for _, row := range []struct {
		err    error
		reason string // empty: the condition stays
	}{
		{fmt.Errorf("child Deployment prod/web: %w", invalid), "Invalid"},
		{apierrors.NewForbidden(deployments, "web", errors.New("exceeded quota")), "Forbidden"},
		{apierrors.NewInternalError(errors.New("failed calling webhook")), "InternalError"},
		{&reconcile.AlreadyControlledError{}, "Failed"},
		{reconcile.Terminal(errors.New("no such size")), "Failed"},
		{errors.Join(reconcile.ErrParentGone, invalid), "Invalid"},
		{errors.Join(tooMany, invalid), "Invalid"},
		{errors.Join(invalid, tooMany), "Invalid"},
		{errors.Join(context.DeadlineExceeded, invalid), "Invalid"},
		{errors.Join(invalid, context.DeadlineExceeded), "Invalid"},
		{fmt.Errorf("apply: %w", errors.Join(conflict, invalid)), "Invalid"},
		{fmt.Errorf("apply: %w", errors.Join(invalid, conflict)), "Invalid"},
		{errors.Join(conflict, tooMany), ""},
		{errors.Join(tooMany, conflict), ""},
		{errors.Join(conflict, reconcile.ErrNotLeading), ""},
		{errors.Join(reconcile.ErrNotLeading, conflict), ""},
		{nil, ""},
		{apierrors.NewConflict(deployments, "web", errors.New("the object has been modified")), ""},
		{reconcile.ErrParentChanged, ""},
		{fmt.Errorf("apply: %w", reconcile.ErrNotLeading), ""},
		{fmt.Errorf("apply: %w", context.Canceled), ""},
		{&url.Error{Op: "Patch", URL: "https://example.com", Err: errors.New("connection refused")}, ""},
		{apierrors.NewTooManyRequests("later", 1), ""},
		{apierrors.NewServiceUnavailable("later"), ""},
	} {
		d := &appsv1.Deployment{}
		var list []metav1.Condition
		conditions := reconcile.ConditionsOf(d, &list, time.Unix(1, 0))
		conditions.True("Ready", "Serving", "")
		changed := conditions.Failed("Ready", row.err)
		got := conditions.Get("Ready")
		if row.reason == "" {
			if changed || got.Status != metav1.ConditionTrue {
				t.Errorf("%v: changed %v, the condition is %+v; want it as before", row.err, changed, got)
			}
			continue
		}
		if !changed || got.Status != metav1.ConditionFalse || got.Reason != row.reason || got.Message != row.err.Error() {
			t.Errorf("%v: changed %v, the condition is %+v; want False, %s and the error's text", row.err, changed, got, row.reason)
		}
	}
}
