// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// standing is a controller of strings that records what it reconciles.
type standing struct {
	*reconcile.Controller[string]
	keys chan string
	wg   sync.WaitGroup
	mu   struct {
		sync.Mutex
		ran []string
	}
}

func newStanding(f reconcile.Func[string]) *standing {
	s := &standing{keys: make(chan string)}
	s.Controller = reconcile.New("standing", func(ctx context.Context, key string) (reconcile.Result, error) {
		s.mu.Lock()
		s.mu.ran = append(s.mu.ran, key)
		s.mu.Unlock()
		return f(ctx, key)
	}, reconcile.KeyedOptions[string]{Workers: 1})
	s.Watch(source.Channel(s.keys, source.ChannelOptions{}))
	return s
}

func (s *standing) ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.ran)
}

func done(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, nil }

func (s *standing) begin(t *testing.T, run func(context.Context) error) context.CancelCauseFunc {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	s.wg.Go(func() {
		if err := run(ctx); err != nil {
			t.Error(err)
		}
	})
	return cancel
}

func TestController_StandbyFillsTheQueueAndRunWorksItOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStanding(done)
		rest := s.begin(t, s.Standby)
		s.keys <- "a"
		s.keys <- "b"
		s.keys <- "a"
		synctest.Wait()
		if got := s.Snapshot(); !got.Synced || got.Queue.Ready != 2 {
			t.Errorf("synced %v, %d keys ready, want true and 2: a standby is warm", got.Synced, got.Queue.Ready)
		}
		if got := s.ran(); len(got) != 0 {
			t.Errorf("it reconciled %v while it stood by", got)
		}
		stop := s.begin(t, s.Run)
		synctest.Wait()
		if got, want := s.ran(), []string{"a", "b"}; !slices.Equal(got, want) {
			t.Errorf("reconciled %v, want %v as soon as it runs", got, want)
		}
		s.keys <- "c"
		synctest.Wait()
		if got := s.ran(); len(got) != 3 {
			t.Errorf("reconciled %v, want c too: the sources of the standby go on", got)
		}
		stop(nil)
		synctest.Wait()
		s.keys <- "d" // the sources continue without workers
		rest(nil)
		s.wg.Wait()
		if got := s.ran(); len(got) != 3 {
			t.Errorf("reconciled %v, want nothing after the end of Run", got)
		}
	})
}

func TestController_StandbyAfterRunHasBegunWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStanding(done)
		stop := s.begin(t, s.Run)
		synctest.Wait()
		rest := s.begin(t, s.Standby)
		s.keys <- "a"
		synctest.Wait()
		if got := s.ran(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("reconciled %v, want a, once: the sources run once", got)
		}
		for want, again := range map[string]func(context.Context) error{
			"run: it is running or has already run; make a new one":    s.Run,
			"stand by: it does or has done so already; make a new one": s.Standby,
		} {
			if err := again(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("again: %v, want %q", err, want)
			}
		}
		stop(nil)
		rest(nil)
		s.wg.Wait()
	})
}

func TestController_SourceThatFailsEndsTheStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStanding(done)
		close(s.keys)
		broken := errors.New("no such pipe")
		s.Watch(failing{broken})
		if err := s.Standby(t.Context()); !errors.Is(err, broken) {
			t.Errorf("Standby = %v, want what the source said", err)
		}
	})
}

// failing is a source that fails at once.
type failing struct{ err error }

func (f failing) Run(context.Context, func(string, source.Cause)) error { return f.err }
func (f failing) Synced() <-chan struct{}                               { return nil }
func (f failing) String() string                                        { return "failing" }

func TestController_CutOffEndsWhatIsInFlightAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStanding(func(ctx context.Context, _ string) (reconcile.Result, error) {
			<-ctx.Done()
			return reconcile.Result{}, ctx.Err()
		})
		stop := s.begin(t, s.Run)
		s.keys <- "a"
		synctest.Wait()
		begin := time.Now()
		stop(fmt.Errorf("another leads: %w", reconcile.ErrCutOff))
		s.wg.Wait()
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v to end, want no time for draining", took)
		}
		if got := s.Snapshot().Outcomes[reconcile.OutcomeStopped]; got != 1 {
			t.Errorf("%d reconciles stopped, want 1", got)
		}
	})
}

func TestController_RefusedWriteIsQuietAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := 2
		s := newStanding(func(context.Context, string) (reconcile.Result, error) {
			if refusals--; refusals < 0 {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{}, fmt.Errorf("update ConfigMap ns/x: %w", reconcile.ErrNotLeading)
		})
		stop := s.begin(t, s.Run)
		s.keys <- "a"
		time.Sleep(time.Minute)
		got := s.Snapshot().Outcomes
		if got[reconcile.OutcomeStopped] != 2 || got[reconcile.OutcomeDone] != 1 || got[reconcile.OutcomeError] != 0 {
			t.Errorf("outcomes %v, want 2 stopped and then done: a lease can be renewed late", got)
		}
		stop(nil)
		s.wg.Wait()
	})
}
