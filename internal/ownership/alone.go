// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"net/http"
)

// Alone calls run whenever this process holds the shard, until ctx ends. The context of run ends
// when the shard is drained or lost, and carries it. Alone returns what run returns, unless run has
// ended because of that: then it calls run again when the shard is held again.
func (g *Guard) Alone(ctx context.Context, shard int, run func(ctx context.Context) error) error {
	changed := make(chan struct{}, 1)
	defer g.Changed(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for {
		if again, err := g.once(ctx, shard, run); !again {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// once calls run if the shard is held. again: it is to run when that is held again.
func (g *Guard) once(
	ctx context.Context, shard int, run func(ctx context.Context) error,
) (again bool, err error) {
	in, leave, _ := g.Enter(ctx, shard)
	if leave == nil {
		return true, nil
	}
	defer leave()
	in, end := context.WithCancel(in)
	defer end()
	endUnlessHeld := func() {
		if !g.Works(shard) {
			end()
		}
	}
	defer g.Changed(endUnlessHeld)()
	endUnlessHeld()
	err = run(in)
	if ctx.Err() == nil && in.Err() != nil {
		return true, nil
	}
	return false, err
}

// Wrap returns a transport whose writes pass the gate.
func (g *Guard) Wrap(next http.RoundTripper) http.RoundTripper { return g.gate.Wrap(next) }
