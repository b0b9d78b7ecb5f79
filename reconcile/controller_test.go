// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// journal collects log lines and notes of reconciles, in order.
type journal struct {
	mu struct {
		sync.Mutex
		lines []string
		notes []string
	}
}

func (j *journal) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.mu.lines = append(j.mu.lines, args)
	}, funcr.Options{Verbosity: 1})
}

func (j *journal) note(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.notes = append(j.mu.notes, text)
}

// notes returns the notes, joined by blanks.
func (j *journal) notes() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.mu.notes, " ")
}

// lines returns the log lines that contain all parts.
func (j *journal) lines(parts ...string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
lines:
	for _, line := range j.mu.lines {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue lines
			}
		}
		found = append(found, line)
	}
	return found
}

// keys is a source controlled by the test.
type keys chan string

func (k keys) source() source.Source[string] {
	return source.Channel(k, source.ChannelOptions{Name: "test"})
}

// slow is a source that syncs when the test says so.
type slow struct {
	synced chan struct{}
	run    func(ctx context.Context, add func(string, source.Cause)) error
}

func newSlow() *slow { return &slow{synced: make(chan struct{})} }

func (s *slow) Run(ctx context.Context, add func(string, source.Cause)) error {
	if s.run != nil {
		return s.run(ctx, add)
	}
	<-ctx.Done()
	return nil
}
func (s *slow) Synced() <-chan struct{} { return s.synced }
func (s *slow) String() string          { return "slow" }

// start runs c until the test's function is done with it, in the bubble of t.
func start[K comparable](t *testing.T, c *reconcile.Controller[K]) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- c.Run(ctx) }()
	synctest.Wait()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-result
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

func TestController_WorkersStartWhenAllSourcesAreSynced_R2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		fed, late := make(keys, 1), newSlow()
		c := reconcile.New("test", func(_ context.Context, key string) (reconcile.Result, error) {
			j.note(key)
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{Logger: j.logger()})
		c.Watch(fed.source())
		c.Watch(late)
		c.Watch(source.Optional[string](newSlow()))
		start(t, c)
		fed <- "a"
		time.Sleep(time.Minute)
		if got := j.notes(); got != "" {
			t.Errorf("reconciled %q while a source was not synced; a worker must not see half of a list", got)
		}
		if got := len(j.lines("Workers have not started", `"sources"="slow"`)); got != 1 {
			t.Errorf("after a minute %d lines name the source that is awaited, want 1: a wait must not be silent", got)
		}
		close(late.synced)
		synctest.Wait()
		if got := j.notes(); got != "a" {
			t.Errorf("reconciled %q after all required sources were synced, want %q", got, "a")
		}
		select {
		case <-c.Synced():
		default:
			t.Error("Synced is not closed though the workers have started")
		}
	})
}

// brief is a source that ends at once.
type brief struct{ synced chan struct{} }

func (s brief) Run(context.Context, func(string, source.Cause)) error { close(s.synced); return nil }
func (s brief) Synced() <-chan struct{}                               { return s.synced }
func (brief) String() string                                          { return "brief" }

func TestController_EndedSourcesAreForgotten_M17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fed := make(keys, 1)
		c := reconcile.New("test", nothing, reconcile.KeyedOptions[string]{})
		c.Watch(fed.source())
		start(t, c)
		for range 1_000 {
			c.Watch(brief{make(chan struct{})})
		}
		synctest.Wait()
		if got := c.Snapshot().Sources; len(got) != 1 || got[0].Source != fed.source().String() {
			t.Errorf("a thousand ended sources leave %d: %+v, want the one that runs", len(got), got[:min(len(got), 3)])
		}
	})
}

func TestController_SourceWatchedBeforeTheStartIsAwaited_R2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newSlow(), newSlow()
		c := reconcile.New("test", nothing, reconcile.KeyedOptions[string]{})
		c.Watch(first)
		start(t, c)
		c.Watch(second) // while the first is awaited
		close(first.synced)
		synctest.Wait()
		if c.Snapshot().Synced {
			t.Error("the workers have started, want them to wait for the source that joined before they did")
		}
		close(second.synced)
		synctest.Wait()
		if !c.Snapshot().Synced {
			t.Error("the workers have not started though all sources are synced")
		}
	})
}

func nothing(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, nil }

func TestController_SourceThatJoinsARunIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		c := reconcile.New("test", func(_ context.Context, key string) (reconcile.Result, error) {
			j.note(key)
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{})
		stop := start(t, c)
		fed := make(keys)
		c.Watch(fed.source())
		fed <- "a"
		synctest.Wait()
		if got := j.notes(); got != "a" {
			t.Errorf("reconciled %q, want %q", got, "a")
		}
		close(fed) // ends the source, not the controller
		synctest.Wait()
		if err := stop(); err != nil {
			t.Errorf("Run returned %v, want nil: ctx ended it", err)
		}
		c.Watch(fed.source())
		if err := c.Err(); err == nil || !strings.Contains(err.Error(), "watch before or during Run") {
			t.Errorf("Watch after the end: Err is %v, want the fix in its text", err)
		}
	})
}

func TestController_SourceThatFailsEndsTheController(t *testing.T) {
	fault := errors.New("no such informer")
	for name, tc := range map[string]struct {
		run  func(context.Context, func(string, source.Cause)) error
		want string
	}{
		"error":                 {func(context.Context, func(string, source.Cause)) error { return fault }, "no such informer"},
		"panic":                 {func(context.Context, func(string, source.Cause)) error { panic(fault) }, "no such informer"},
		"return without a sync": {func(context.Context, func(string, source.Cause)) error { return nil }, "before its Synced channel was closed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow()
				s.run = tc.run
				c := reconcile.New("test", nothing, reconcile.KeyedOptions[string]{})
				c.Watch(s)
				c.Watch(newSlow())
				err := c.Run(t.Context())
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `controller "test"`) {
					t.Errorf("Run returned %v, want the controller's name and %q", err, tc.want)
				}
			})
		})
	}
}

func TestController_RemembersMisuse(t *testing.T) {
	var none *slow
	for name, tc := range map[string]struct {
		make func() *reconcile.Controller[string]
		want string
	}{
		"nil function": {func() *reconcile.Controller[string] {
			return reconcile.New[string]("test", nil, reconcile.KeyedOptions[string]{})
		}, "reconcile function is nil"},
		"empty name": {func() *reconcile.Controller[string] {
			return reconcile.New("", nothing, reconcile.KeyedOptions[string]{})
		}, "name is empty"},
		"negative workers": {func() *reconcile.Controller[string] {
			return reconcile.New("test", nothing, reconcile.KeyedOptions[string]{Workers: -1})
		}, "Workers is -1"},
		"records without room": {func() *reconcile.Controller[string] {
			return reconcile.New("test", nothing, reconcile.KeyedOptions[string]{RecordBytes: 100})
		}, "RecordBytes is 100"},
		"room for no records": {func() *reconcile.Controller[string] {
			return reconcile.New("test", nothing, reconcile.KeyedOptions[string]{RecordRuns: -1, RecordBytes: 1 << 20})
		}, "leave one of them out"},
		"negative room for records": {func() *reconcile.Controller[string] {
			return reconcile.New("test", nothing, reconcile.KeyedOptions[string]{RecordBytes: -1})
		}, "set RecordRuns to -1"},
		"nil source": {func() *reconcile.Controller[string] {
			c := reconcile.New("test", nothing, reconcile.KeyedOptions[string]{})
			c.Watch(nil)
			return c
		}, "source is nil"},
		"nil pointer as source": {func() *reconcile.Controller[string] {
			c := reconcile.New("test", nothing, reconcile.KeyedOptions[string]{})
			c.Watch(none)
			return c
		}, "source is nil"},
		"source with misuse": {func() *reconcile.Controller[string] {
			c := reconcile.New("test", nothing, reconcile.KeyedOptions[string]{})
			c.Watch(source.Channel[string](nil, source.ChannelOptions{}))
			return c
		}, "channel is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			c := tc.make()
			if err := c.Err(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Err is %v, want %q in it", err, tc.want)
			}
			if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Run returned %v, want %q in it, and at once", err, tc.want)
			}
		})
	}
}

func TestController_RunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := reconcile.New("test", nothing, reconcile.KeyedOptions[string]{})
		start(t, c)
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "make a new one") {
			t.Errorf("the second Run returned %v, want an error with the fix", err)
		}
	})
}

func TestController_EndLetsReconcilesFinishAndTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		fed := make(keys, 2)
		c := reconcile.New("test", func(ctx context.Context, key string) (reconcile.Result, error) {
			time.Sleep(10 * time.Second)
			if ctx.Err() != nil {
				key += ":cancelled"
			}
			j.note(key)
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{Workers: 1})
		c.Watch(fed.source())
		stop := start(t, c)
		fed <- "a"
		fed <- "b"
		synctest.Wait()
		if err := stop(); err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
		if got := j.notes(); got != "a" {
			t.Errorf("reconciled %q, want %q: what is held may finish, what waits is not begun", got, "a")
		}
	})
}

func TestController_EndsWhileSourcesAreNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fed := make(keys, 1)
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			t.Error("reconciled though a source was never synced")
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{})
		c.Watch(fed.source())
		c.Watch(newSlow())
		stop := start(t, c)
		fed <- "a"
		synctest.Wait()
		if err := stop(); err != nil || c.Snapshot().Synced {
			t.Errorf("Run returned %v with synced %t, want nil and false", err, c.Snapshot().Synced)
		}
	})
}

func TestController_EndDropsWhatIsDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		fed := make(keys, 1)
		c := reconcile.New("test", func(_ context.Context, key string) (reconcile.Result, error) {
			j.note(key)
			return reconcile.After(time.Minute, "later"), nil
		}, reconcile.KeyedOptions[string]{})
		c.Watch(fed.source())
		stop := start(t, c)
		fed <- "a"
		synctest.Wait()
		began := time.Now()
		if err := stop(); err != nil || time.Since(began) != 0 {
			t.Errorf("Run returned %v after %s, want nil at once", err, time.Since(began))
		}
		time.Sleep(time.Hour)
		if got := j.notes(); got != "a" {
			t.Errorf("reconciled %q, want %q: nothing runs after the end", got, "a")
		}
	})
}

func TestController_EndFitsIntoAPodsGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fed := make(keys, 1)
		c := reconcile.New("test", func(ctx context.Context, _ string) (reconcile.Result, error) {
			<-ctx.Done()
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{})
		c.Watch(fed.source())
		stop := start(t, c)
		fed <- "a"
		synctest.Wait()
		began := time.Now()
		_ = stop()
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("the end took %s with the zero Options, want 20s: a pod has 30s for all its ending", took)
		}
	})
}

func TestController_EndCutsOffAfterTheDrainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		fed := make(keys, 1)
		c := reconcile.New("test", func(ctx context.Context, key string) (reconcile.Result, error) {
			<-ctx.Done()
			return reconcile.Result{}, context.Cause(ctx)
		}, reconcile.KeyedOptions[string]{Logger: j.logger(), DrainTimeout: 5 * time.Second})
		c.Watch(fed.source())
		stop := start(t, c)
		fed <- "a"
		synctest.Wait()
		began := time.Now()
		if err := stop(); err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("the end took %s, want the drain timeout of 5s", took)
		}
		if got := c.Snapshot().Outcomes[reconcile.OutcomeStopped]; got != 1 {
			t.Errorf("%d reconciles counted as stopped, want 1: being cut off is no fault of the reconcile", got)
		}
		if got := j.lines("still runs at the end", `"key"="a"`); len(got) != 1 {
			t.Errorf("log lines that name what still ran: %q, want one", got)
		}
	})
}
