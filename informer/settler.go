// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// settleSoon and settleLate are the shortest and the longest pause after a read that failed.
	settleSoon = 100 * time.Millisecond
	settleLate = 30 * time.Second
)

// settlerStore is the store of an informer. Its methods are called by one goroutine.
type settlerStore interface {
	// Version returns the version of the object of key; 0: there is none, or it is unknown.
	Version(key kube.Key) kube.Version
	// Keys yields the keys of a namespace; empty: all.
	Keys(namespace string) iter.Seq[kube.Key]
	// Found stores an object as the server has it now.
	Found(item listwatch.Item[kube.Object])
	// Absent stores that a consistent read at version did not find key.
	Absent(key kube.Key, version kube.Version)
}

// settler reads from the server what own writes have left unknown, one key at a time.
type settler struct {
	unsettledKeys
	Store settlerStore
	// Read returns where to read the objects of a scope.
	Read     func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error)
	Name     string // of the informer, for simulations
	Log      logr.Logger
	PageSize int64 // of lists
}

// Run settles what is marked until ctx ends.
func (s *settler) Run(ctx context.Context) error {
	sim, pause := simhook.Of(ctx), settleSoon
	for {
		r, ok, marked := s.Next()
		if !ok {
			select {
			case <-marked:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		if sim != nil {
			sim.Step(ctx, "settle", s.Name+" "+r.Key.String())
		}
		err := s.settle(ctx, r)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			s.Log.V(1).Info("Cannot read the effect of an own write; trying again", "key", r.Key.String(), "after", pause, "because", err.Error())
			sleep.For(ctx, pause+simhook.Duration(sim, "settle", pause/2))
			pause = min(2*pause, settleLate)
			continue
		}
		pause = settleSoon
		for _, do := range s.Done(r) {
			do()
		}
	}
}

// End releases everybody who waits: nothing is read any more.
func (s *settler) End() {
	for _, do := range s.Close() {
		do()
	}
}

// settle stores the present state of what r is about.
func (s *settler) settle(ctx context.Context, r settlerRead) error {
	if r.Version != 0 && s.Store.Version(r.Key) >= r.Version {
		return nil // the watch was faster
	}
	scope := listwatch.Scope{Namespace: r.Key.Namespace}
	if r.Key.Name != "" {
		scope.FieldSelector = "metadata.name=" + r.Key.Name
	}
	found, version, err := s.list(ctx, scope)
	if _, gone := errors.AsType[*kube.NotServedError](err); gone {
		return nil // the informer removes the objects of a kind that is not served
	}
	if err != nil {
		return err
	}
	if r.Key.Name != "" {
		if !found[r.Key] {
			s.Store.Absent(r.Key, version)
		}
		return nil
	}
	for key := range s.Store.Keys(r.Key.Namespace) {
		if !found[key] {
			s.Store.Absent(key, version)
		}
	}
	return nil
}

// list stores the objects of a consistent list. It returns their keys, with those of
// objects that exist but cannot be stored, and the version of the list.
func (s *settler) list(ctx context.Context, scope listwatch.Scope) (found map[kube.Key]bool, version kube.Version, err error) {
	lw, err := s.Read(scope)
	if err != nil {
		return nil, 0, err
	}
	found = make(map[kube.Key]bool)
	pages := restclient.PageReader{Lw: lw}
	opts := listwatch.ListOptions{Limit: s.PageSize}
	for {
		page, err := pages.Read(ctx, opts)
		if err == nil && page.Unreadable > 0 {
			err = page.UnreadableErr
		}
		if err != nil {
			return nil, 0, err
		}
		for _, item := range page.Items {
			found[item.Key] = true
			if item.Err == nil && item.Anomaly == base.Sound {
				s.Store.Found(item)
			}
		}
		if page.Continue == "" {
			return found, kube.ParseVersion(page.ResourceVersion), nil
		}
		opts.Continue = page.Continue
	}
}
