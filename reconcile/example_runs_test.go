// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func explainKey(c *reconcile.Controller[reconcile.Key], key reconcile.Key) {
	for _, run := range c.Runs(key) {
		fmt.Printf("%s, because of %s. %s\n", run.Outcome, run.Causes, run.Err)
		for _, q := range run.Requests { // of clients with the manager's configuration
			fmt.Println(" ", q.Verb, q.Resource, q.Key, q.Code, q.Effect, q.Fields)
		}
	}
}

// Each run has its causes, its result, and what it has sent and changed.
func ExampleController_Runs() {
	site := reconcile.Key{Namespace: "shop", Name: "web"}
	calls, third := 0, make(chan struct{})
	c := reconcile.New("website", func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
		switch calls++; calls {
		case 1:
			return reconcile.Result{}, errors.New("the database is away")
		case 2:
			return reconcile.After(time.Millisecond, "checks the database again"), nil
		}
		close(third)
		<-ctx.Done()
		return reconcile.Result{}, nil
	}, reconcile.Options{DrainTimeout: -1})
	hooks := make(chan reconcile.Key, 1)
	hooks <- site
	c.Watch(source.Channel(hooks, source.ChannelOptions{Name: "hooks"}))

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	<-third // which is not recorded before its end
	explainKey(c, site)
	stop()
	<-ended
	// Output:
	// error, because of channel hooks. the database is away
	// after, because of retry: the database is away.
}
