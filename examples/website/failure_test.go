// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// A child that cannot be applied, here because somebody has a Deployment of that name, is in the
// status of the Website and in a Warning, until the way is free.
func TestFailure_OfAChildIsInTheStatusAndAnEvent(t *testing.T) {
	cfg := simulated(t)
	cfg.Seeds = 3
	kit.Test(t, cfg, func(w *kit.World) {
		const complaint = "has no controller"
		theirs := deploymentFor(website("site", "page", 1))
		theirs.Namespace = "default"
		w.Create(theirs)
		w.Run(setup)
		ready := func() *metav1.Condition {
			site := website("site", "", 0)
			w.Get(site)
			return meta.FindStatusCondition(site.Status.Conditions, conditionReady)
		}
		w.Settled(func() error {
			if c := ready(); c == nil || c.Status != metav1.ConditionTrue {
				return fmt.Errorf("the condition is %+v, want True", c)
			}
			return nil
		})
		w.Create(website("site", "page", 1))
		w.Eventually(func() error {
			c := ready()
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "Failed" || !strings.Contains(c.Message, complaint) {
				return fmt.Errorf("the condition is %+v, want False, Failed and %q", c, complaint)
			}
			for event, err := range client.List[*eventsv1.Event](context.Background(), w.Client(), client.InNamespace("default")) {
				if err != nil {
					return err
				}
				if event.Type == corev1.EventTypeWarning && strings.Contains(event.Note, complaint) {
					return nil
				}
			}
			return fmt.Errorf("there is no Warning with %q", complaint)
		})
		w.Delete(&appsv1.Deployment{TypeMeta: theirs.TypeMeta, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: theirs.Name}})
	})
}
