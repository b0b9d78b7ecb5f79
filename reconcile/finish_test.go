// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
)

var websites = schema.GroupResource{Group: "web.example.com", Resource: "websites"}

// passing is a conflict that knows when the cache has passed it.
type passing struct{ error }

func (passing) WhenPassed(func()) func() { return func() {} }

func staleConflict() error {
	return apierrors.NewConflict(websites, "a", errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

func uidConflict() error {
	return apierrors.NewConflict(websites, "a", errors.New("Precondition failed: UID in precondition: 1, UID in object meta: 2"))
}

func fieldManagerConflict() error {
	return apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Message: "conflict with \"other\""}}, "Apply failed with 1 conflict")
}

func TestDecide_WhatEachReturnMeans_R6(t *testing.T) {
	fault := errors.New("connection refused")
	hard := &DeadlineError{Limit: time.Minute}
	wrapped := func(err error) error { return fmt.Errorf("update website: %w", err) }
	pass := passing{staleConflict()}
	unsettled := &kube.NotSettledError{}
	for _, tc := range []struct {
		name  string
		res   Result
		err   error
		cause error
		want  action
	}{
		{"zero", Result{}, nil, nil, action{outcome: OutcomeDone, forget: true}},
		{"reason alone", Result{Reason: "r"}, nil, nil, action{outcome: OutcomeDone, forget: true}},
		{"after", After(time.Minute, "r"), nil, nil, action{outcome: OutcomeAfter, forget: true, after: time.Minute}},
		{"after nothing", After(0, "r"), nil, nil, action{outcome: OutcomeRetry, backoff: true}},
		{"after a past moment", After(-time.Minute, "r"), nil, nil, action{outcome: OutcomeRetry, backoff: true}},
		{"negative literal", Result{RequeueAfter: -1}, nil, nil, action{outcome: OutcomeRetry, backoff: true}},
		{"retry", Retry("r"), nil, nil, action{outcome: OutcomeRetry, backoff: true}},
		{"after and retry", Result{RequeueAfter: 1, Retry: true}, nil, nil, action{outcome: OutcomeAfter, forget: true, after: 1}},
		{"done after the hard deadline", Result{}, nil, hard, action{outcome: OutcomeDone, forget: true}},

		{"error", Result{}, fault, nil, action{outcome: OutcomeError, backoff: true}},
		{"error wins over after", After(time.Minute, "r"), fault, nil, action{outcome: OutcomeError, backoff: true}},
		{"cancelled without a cause of ours", Result{}, context.Canceled, context.Canceled, action{outcome: OutcomeError, backoff: true}},

		{"terminal", Result{}, Terminal(fault), nil, action{outcome: OutcomeTerminal, forget: true}},
		{"terminal wins over after", After(time.Minute, "r"), Terminal(fault), nil, action{outcome: OutcomeTerminal, forget: true}},
		{"terminal, wrapped", Result{}, wrapped(Terminal(fault)), nil, action{outcome: OutcomeTerminal, forget: true}},
		{"terminal of joined", Result{}, Terminal(errors.Join(fault, fault)), nil, action{outcome: OutcomeTerminal, forget: true}},
		{"terminal of a conflict", Result{}, Terminal(staleConflict()), nil, action{outcome: OutcomeTerminal, forget: true}},
		{"terminal of nothing", Result{}, Terminal(nil), nil, action{outcome: OutcomeDone, forget: true}},
		{"terminal joined with terminal", Result{}, errors.Join(Terminal(fault), Terminal(fault)), nil, action{outcome: OutcomeTerminal, forget: true}},
		{"terminal joined with what can be retried", Result{}, errors.Join(Terminal(fault), fault), nil, action{outcome: OutcomeError, backoff: true}},
		{"key that no object can have", Result{}, wrapped(&kube.NamespaceError{}), nil, action{outcome: OutcomeTerminal, forget: true}},
		{"undecodable in an informer", Result{}, wrapped(&kube.UndecodableError{Err: fault}), nil, action{outcome: OutcomeTerminal, forget: true}},
		{"undecodable on the server", Result{}, wrapped(&kube.UndecodableError{Live: true, Err: fault}), nil, action{outcome: OutcomeError, backoff: true}},
		{"terminal after the hard deadline", Result{}, Terminal(fault), hard, action{outcome: OutcomeTerminal, forget: true}},

		{"stale conflict", Result{}, staleConflict(), nil, action{outcome: OutcomeConflict, backoff: true}},
		{"outdated parent", Result{}, wrapped(ErrParentChanged), nil, action{outcome: OutcomeConflict, backoff: true}},
		{"deleted parent", Result{}, wrapped(ErrParentGone), nil, action{outcome: OutcomeConflict, backoff: true}},
		{"stale conflict, wrapped", Result{}, wrapped(staleConflict()), nil, action{outcome: OutcomeConflict, backoff: true}},
		{"conflict wins over after", After(time.Minute, "r"), staleConflict(), nil, action{outcome: OutcomeConflict, backoff: true}},
		{"stale conflict that knows the version", Result{}, wrapped(pass), nil, action{outcome: OutcomeConflict, backoff: true, early: pass}},
		{"not settled", Result{}, wrapped(unsettled), nil, action{outcome: OutcomeConflict, backoff: true, early: unsettled, parked: true}},
		{"not settled, and a conflict", Result{}, errors.Join(unsettled, staleConflict()), nil, action{outcome: OutcomeConflict, backoff: true, early: unsettled}},
		{"two conflicts", Result{}, errors.Join(pass, staleConflict()), nil, action{outcome: OutcomeConflict, backoff: true, early: pass}},
		{"conflict joined with a fault", Result{}, errors.Join(pass, fault), nil, action{outcome: OutcomeError, backoff: true}},
		{"conflict of field managers", Result{}, wrapped(fieldManagerConflict()), nil, action{outcome: OutcomeError, backoff: true}},
		{"conflict of UIDs", Result{}, wrapped(uidConflict()), nil, action{outcome: OutcomeError, backoff: true}},
		{"name taken", Result{}, apierrors.NewAlreadyExists(websites, "a"), nil, action{outcome: OutcomeError, backoff: true}},

		{"panic", Result{}, &PanicError{Value: "boom"}, nil, action{outcome: OutcomePanic, backoff: true}},
		{"panic with a terminal error", Result{}, &PanicError{Value: Terminal(fault)}, nil, action{outcome: OutcomePanic, backoff: true}},
		{"panic after the hard deadline", Result{}, &PanicError{Value: "boom"}, hard, action{outcome: OutcomePanic, backoff: true}},

		{"error after the hard deadline", Result{}, context.DeadlineExceeded, hard, action{outcome: OutcomeTimeout, backoff: true}},
		{"conflict after the hard deadline", Result{}, staleConflict(), hard, action{outcome: OutcomeConflict, backoff: true}},
		{"error after the drain", Result{}, context.Canceled, ErrStopped, action{outcome: OutcomeStopped}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := decide(tc.res, tc.err, tc.cause); got != tc.want {
				t.Errorf("decide(%+v, %v, %v)\n got %+v\nwant %+v", tc.res, tc.err, tc.cause, got, tc.want)
			}
		})
	}
}

func TestIgnoreNotFound_OnlyWhenAllIsNotFound(t *testing.T) {
	gone, fault := apierrors.NewNotFound(websites, "a"), errors.New("connection refused")
	for _, tc := range []struct {
		name   string
		err    error
		ignore bool
	}{
		{"nil", nil, true},
		{"not found", gone, true},
		{"not found, wrapped", fmt.Errorf("get: %w", gone), true},
		{"not found twice", errors.Join(gone, gone), true},
		{"not found and a fault", errors.Join(gone, fault), false},
		{"fault", fault, false},
		{"terminal fault", Terminal(fault), false},
	} {
		if got := IgnoreNotFound(tc.err) == nil; got != tc.ignore {
			t.Errorf("%s: ignored %t, want %t: a fault must not be lost with what is gone", tc.name, got, tc.ignore)
		}
	}
}

func TestTerminal_KeepsTheErrorItMarks(t *testing.T) {
	fault := errors.New("replicas is negative")
	if err := Terminal(fault); !errors.Is(err, fault) || err.Error() != fault.Error() {
		t.Errorf("got %v, want an error that is %v and reads the same", err, fault)
	}
	if err := Terminal(nil); err != nil {
		t.Errorf("Terminal(nil) is %v, want nil: no error is no error", err)
	}
}

func TestKeyText_ReadsAsKubectlNamesObjects(t *testing.T) {
	for key, want := range map[any]string{
		Key{Namespace: "prod", Name: "a"}: "prod/a",
		Key{Name: "node-1"}:               "node-1",
		"text":                            "text",
		7:                                 "7",
	} {
		if got := keyText(key); got != want {
			t.Errorf("keyText(%#v) is %q, want %q", key, got, want)
		}
	}
}

func TestFor_WhatFollowsFromAReadWithoutAnObject_B10(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Website"}
	for name, tc := range map[string]struct {
		err  error
		want Outcome
	}{
		"not found":    {apierrors.NewNotFound(websites, "a"), OutcomeDone},
		"not synced":   {&kube.NotSyncedError{Kind: kind}, OutcomeRetry},
		"undecodable":  {&kube.UndecodableError{}, OutcomeTerminal},
		"out of scope": {&kube.OutOfScopeError{Kind: kind}, OutcomeTerminal},
		"namespace":    {&kube.NamespaceError{Kind: kind}, OutcomeTerminal},
		"released":     {&kube.ReleasedError{Kind: kind}, OutcomeTerminal},
		"other":        {errors.New("what nobody knows"), OutcomeError},
	} {
		res, err := unreadable(fmt.Errorf("read: %w", tc.err))
		if got := decide(res, err, nil).outcome; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
