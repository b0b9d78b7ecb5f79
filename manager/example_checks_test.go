// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/manager"
)

func addChecks(mgr *manager.Manager, rates *rateTable) error {
	// No traffic until the rates have been read once; a rollout waits here.
	if err := mgr.AddReadyCheck("rates", func(ctx context.Context) error { return rates.loaded() }); err != nil {
		return err
	}
	// Only a restart releases a lock whose holder is gone.
	return mgr.AddLiveCheck("rates/lock", func(ctx context.Context) error { return rates.unlocksWithin(ctx, time.Second) })
}

// rateTable stands for something that only this program knows of.
type rateTable struct {
	rates map[string]float64
	lock  chan struct{} // holds a token while it is free
}

func (r *rateTable) loaded() error {
	if len(r.rates) == 0 {
		return errors.New("no rates yet")
	}
	return nil
}

func (r *rateTable) unlocksWithin(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-r.lock:
		r.lock <- struct{}{}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A ready check keeps traffic away; a live check that fails restarts the process.
func ExampleManager_AddReadyCheck() {
	mgr, err := manager.New(manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := addChecks(mgr, &rateTable{lock: make(chan struct{}, 1)}); err != nil {
		fmt.Println(err)
	}
}
