// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"

	"github.com/flyball-dev/flyball/informer/listwatch"
)

// placing asks, before each list and watch, whether objects of the kind live in
// namespaces. A kind that does not is watched once, however many namespaces it
// was asked for in: the scope that then is one too many ends here.
type placing[T Object] struct {
	ListerWatcher[T]
	place func(context.Context) error
}

func (l placing[T]) List(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[T], error) {
	if err := l.place(ctx); err != nil {
		return listwatch.Page[T]{}, err
	}
	return l.ListerWatcher.List(ctx, opts)
}

func (l placing[T]) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[T], error) {
	if err := l.place(ctx); err != nil {
		return nil, err
	}
	return l.ListerWatcher.Watch(ctx, opts)
}

// place has every handle cover what it asked for, by what discovery says of the
// kind. It returns ctx's error when the scope of the caller has ended by that.
func (c *core) place(ctx context.Context, s WatchScope) error {
	if c.discover == nil || s.Namespace == "" && !c.anyClusterWide() {
		return nil
	}
	namespaced, err := c.discover(ctx)
	if err != nil {
		return fmt.Errorf("list %s %s: %w", c.kind.Kind, s, err)
	}
	c.replan(!namespaced)
	return ctx.Err()
}

func (c *core) anyClusterWide() bool {
	c.critical.Lock()
	defer c.critical.Unlock()
	for _, h := range c.critical.handles {
		if h.clusterWide {
			return true
		}
	}
	return false
}

// replan has the handles that were planned otherwise cover anew what they asked
// for.
func (c *core) replan(clusterWide bool) {
	c.replanUnder(clusterWide)
	c.callPassed()
}

func (c *core) replanUnder(clusterWide bool) {
	c.critical.Lock()
	defer c.critical.Unlock()
	for _, h := range c.critical.handles {
		if h.asked == nil || h.clusterWide == clusterWide {
			continue
		}
		h.clusterWide = clusterWide
		if err := c.coverLocked(h, h.asked); err != nil {
			c.log.Error(err, "Scopes of a handle cannot be watched as discovery says")
		}
	}
}
