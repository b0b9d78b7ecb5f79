// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"context"
	"testing"

	"github.com/flyball-dev/flyball/internal/task"
)

type counter int

func (c *counter) Moved()                       { *c++ }
func (c *counter) Name() (controller, k string) { return "c", "k" }

func TestOf_IsTheTaskOfTheContext(t *testing.T) {
	if is := task.Of(t.Context()); is != nil {
		t.Errorf("Of = %v in a context outside of a reconcile, want nil", is)
	}
	var c counter
	ctx := context.WithValue(t.Context(), task.Key{}, &c)
	if is := task.Of(ctx); is != &c {
		t.Errorf("Of = %v, want the one given", is)
	}
	task.Moved(t.Context()) // reaches none
	task.Moved(ctx)
	if c != 1 {
		t.Errorf("%d signs of progress arrived, want 1", c)
	}
}
