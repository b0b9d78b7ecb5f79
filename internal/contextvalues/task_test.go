// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package contextvalues_test

import (
	"context"
	"testing"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/kube"
)

type counter int

func (c *counter) Moved()                       { *c++ }
func (c *counter) Name() (controller, k string) { return "c", "k" }

func (*counter) Records() bool                              { return false }
func (*counter) Sent(contextvalues.Request) int             { return -1 }
func (*counter) Answered(int, contextvalues.Answer)         {}
func (*counter) Effected(w kube.Written, from kube.Version) {}

func TestOf_IsTheTaskOfTheContext(t *testing.T) {
	if is := contextvalues.TaskOf(t.Context()); is != nil {
		t.Errorf("Of = %v in a context outside of a reconcile, want nil", is)
	}
	var c counter
	ctx := context.WithValue(t.Context(), contextvalues.TaskKey{}, &c)
	if is := contextvalues.TaskOf(ctx); is != &c {
		t.Errorf("Of = %v, want the one given", is)
	}
	contextvalues.Moved(t.Context()) // reaches none
	contextvalues.Moved(ctx)
	if c != 1 {
		t.Errorf("%d signs of progress arrived, want 1", c)
	}
}
