// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// The actors keep nothing about objects that are gone.
func TestActors_ForgetWhatIsGone(t *testing.T) {
	c := newControllers(emptyCluster{}, 0, 0)
	c.add(chosen(c, Options{GarbageCollector: true, Workloads: true})...)
	pod := object.Object{Fields: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "n", "name": "p"}}}
	at := revisions.Change{Resource: object.Pods, Key: types.NamespacedName{Namespace: "n", Name: "p"}, Before: &pod}
	for _, a := range c.order {
		c.steps[task{a.name(), aboutOf(at)}], c.failures[task{a.name(), aboutOf(at)}] = 3, 3
	}
	c.pass(timedChange{time.Now(), at})
	for e := range c.steps {
		if !c.timeline.has(e) {
			t.Errorf("%v is still counted, and has no step planned", e)
		}
	}
}

// emptyCluster stores nothing.
type emptyCluster struct{ Cluster }

func (emptyCluster) Get(Reference) *object.Object { return nil }
