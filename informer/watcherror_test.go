// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

func TestInformer_ErrorHandlerHearsWhatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer[cmap]()
		s.Fail(errors.New("no list"))
		i := informer.New(s, configMaps, informer.Options{})
		l := &log{}
		if err := i.SetErrorHandler(func(_ context.Context, err error) {
			l.add(err.Error())
			panic("costs nothing else")
		}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		synctest.Wait()
		expect(t, "a list that fails", l.take(), "no list")
		s.Fail(nil)
		<-i.Synced()
		l.take()
		s.Cut(io.EOF)
		time.Sleep(time.Minute)
		expect(t, "a clean end is no error", l.take())
		s.Cut(errors.New("reset"))
		synctest.Wait()
		expect(t, "a watch that breaks", l.take(), "reset")
		if i.SetErrorHandler(nil) == nil {
			t.Error("the handler can be changed after the start")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		expect(t, "the informer's own end is no error", l.take())
	})
}

func TestInformer_EndedWhenItsRunHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := informer.New(informertest.NewServer[cmap](), configMaps, informer.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		<-i.Synced()
		select {
		case <-i.Ended():
			t.Error("ended while it runs")
		default:
		}
		cancel()
		<-i.Ended()
		<-done
		if i.OfFactory() {
			t.Error("an informer made by New is said to be of a factory")
		}
	})
}

// A server that reports no support for streaming lists is not asked for one.
type pagedServer struct {
	*informertest.Server[cmap]
	streams *int
}

func (pagedServer) IsWatchListSemanticsUnSupported() bool { return true }

func (s pagedServer) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[cmap], error) {
	if opts.SendInitialEvents {
		*s.streams++
	}
	return s.Server.Watch(ctx, opts)
}

func TestInformer_NoStreamingListWhereNoneIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := 0
		i := informer.New(pagedServer{informertest.NewServer[cmap](), &streams}, configMaps, informer.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		<-i.Synced()
		cancel()
		<-done
		if streams != 0 {
			t.Errorf("asked for %d streaming lists, want none", streams)
		}
	})
}
