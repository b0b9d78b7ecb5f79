// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package lifesign_test

import (
	"context"
	"testing"

	"github.com/flyball-dev/flyball/internal/lifesign"
)

type counter int

func (c *counter) Moved() { *c++ }

func TestMoved_ReachesTheTakerOfTheContext(t *testing.T) {
	var c counter
	lifesign.Moved(t.Context()) // without a Taker
	lifesign.Moved(context.WithValue(t.Context(), lifesign.Key{}, &c))
	if c != 1 {
		t.Errorf("%d signs arrived, want 1", c)
	}
}
