// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// A Deployment that the server refuses shows in the status of its Frontend, with the server's
// message, and in an Event. A test of the template, not a part of it.
func TestFailure_OfAChildIsInTheStatusAndAnEvent(t *testing.T) {
	cfg := config(t)
	cfg.Seeds = 3
	kit.Test(t, cfg, func(w *kit.World) {
		w.Run(setup)
		const complaint = "must not have leading or trailing whitespace"
		frontend := newFrontend("one", "nginx ", 1)
		w.Settled(func() error { return isReady(w, newFrontend("one", "", 0)) })
		w.Create(frontend)
		w.Eventually(func() error {
			got := newFrontend("one", "", 0)
			w.Get(got)
			c := meta.FindStatusCondition(got.Status.Conditions, "Ready")
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "Invalid" || !strings.Contains(c.Message, complaint) {
				return fmt.Errorf("the condition is %+v, want False, Invalid and %q", c, complaint)
			}
			return warning(w.Client())
		})
		w.Edit(frontend, func() { frontend.Spec.Image = "nginx" })
	})
}

// warning returns an error unless there is an Event of the failure. Its note may be that of a
// refusal before, with which the server counts those that follow.
func warning(c *client.Client) error {
	var notes []string
	for event, err := range client.List[*eventsv1.Event](context.Background(), c, client.InNamespace("default")) {
		if err != nil {
			return err
		}
		if event.Type == corev1.EventTypeWarning && event.Reason == "ChildFailed" && strings.HasPrefix(event.Note, "child Deployment default/one: ") {
			return nil
		}
		notes = append(notes, event.Note)
	}
	return fmt.Errorf("the events are %q, want a Warning about the Deployment", notes)
}
