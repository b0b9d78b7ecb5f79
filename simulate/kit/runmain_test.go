// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// poll is a program without a manager: each second it copies the ConfigMaps that have no
// copy.
func poll(ctx context.Context, cfg *rest.Config) error {
	cl, err := client.New(cfg, clientscheme.Scheme, client.Options{})
	if err != nil {
		return err
	}
	for {
		for m, err := range client.List[*corev1.ConfigMap](ctx, cl, client.InNamespace("default")) {
			if err != nil {
				break
			}
			if !strings.HasPrefix(m.Name, prefix) {
				_ = cl.Create(ctx, configMap(prefix+m.Name, m.Data)) // again in a second
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

func polled(w *kit.World) {
	kit.RunMain(w, "poller", poll)
	w.Settled(copied(w))
	w.Create(configMap("one", map[string]string{"k": "1"}))
	w.Sleep(5 * time.Second)
	w.Create(configMap("two", map[string]string{"k": "2"}))
}

func TestRunMain_SwarmLeavesAProgramWithoutAManagerWhole_K14(t *testing.T) {
	kit.Test(t, kit.Config{Seeds: 20}, polled)
}

// livesOf returns what starts, crashes and exits, in order.
func livesOf(h *kit.History) string {
	var lives []string
	for _, e := range h.Events {
		if e.What == kit.Stopping {
			break
		}
		if e.What == kit.Started || e.What == kit.Crashed || e.What == kit.Exited {
			lives = append(lives, strings.TrimSuffix(e.What+" "+e.Who+" "+e.Text, " "))
		}
	}
	return strings.Join(lives, ", ")
}

func TestRunMain_ACrashIsFollowedByAnotherProcess_K14(t *testing.T) {
	plan := kit.Plan{kit.Crash(time.Second).AfterWrite("create ConfigMap", 1), kit.Stop(time.Second).At(10 * time.Second)}
	h := kit.Run(t, kit.Config{Faults: plan}, 1, polled)
	sound(t, h)
	want := "started poller-1, crashed poller-1, exited poller-1, started poller-2, exited poller-2, started poller-3"
	if got := livesOf(h); got != want {
		t.Errorf("the lives are %s, want %s", got, want)
	}
	if h.Inexact == "" {
		t.Error("the history does not say that another run may differ")
	}
}

// A main that fails is started again, one that ends unasked or does not stop cleanly is
// wrong.
func TestRunMain_HowItEnds_K14(t *testing.T) {
	calls := 0
	for name, c := range map[string]struct {
		main  func(context.Context, *rest.Config) error
		wrong string // in a V11; empty: nothing
	}{
		"an error before it is asked to stop": {func(ctx context.Context, cfg *rest.Config) error {
			if calls++; calls == 1 {
				return errors.New("the lease is lost")
			}
			return poll(ctx, cfg)
		}, ""},
		"nil unasked": {func(ctx context.Context, _ *rest.Config) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return nil
		}, "its main returned nil, and its context had not ended"},
		"an error at rest": {func(ctx context.Context, _ *rest.Config) error {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(3 * time.Minute):
				return errors.New("the lease is lost")
			}
		}, "ended by itself at rest: the lease is lost"},
		"an error when stopped": {func(ctx context.Context, _ *rest.Config) error {
			<-ctx.Done()
			return errors.New("grace period over")
		}, "was asked to stop, and its main returned grace period over"},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, func(w *kit.World) {
				kit.RunMain(w, "program", c.main)
				w.Sleep(10 * time.Second)
			})
			if c.wrong == "" {
				sound(t, h)
				if !slices.ContainsFunc(h.Events, func(e kit.Event) bool { return e.Who == "program-2" && e.At < 3*time.Second }) {
					t.Errorf("the lives are %s, want another after a second", livesOf(h))
				}
				return
			}
			finds(t, h, "V11", c.wrong)
		})
	}
}

// A write that vanishes in a black hole fails after 45 seconds, as with the health check of
// HTTP/2 in production.
func TestRunMain_ASilentConnectionBreaks_K14(t *testing.T) {
	for name, fault := range map[string]kit.Op{"black hole": kit.BlackHole(), "partition": kit.Partition(time.Second)} {
		var took time.Duration
		plan := kit.Plan{fault.BeforeWrite("create ConfigMap", 1)}
		h := kit.Run(t, kit.Config{Faults: plan, FaultPhase: 2 * time.Second}, 1, func(w *kit.World) {
			kit.RunMain(w, "program", func(ctx context.Context, cfg *rest.Config) error {
				plain, err := rest.HTTPClientFor(cfg)
				if err != nil {
					return err
				}
				if answer, err := plain.Get(cfg.Host + "/api/v1/namespaces"); err == nil { // opens a connection
					_, _ = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
				}
				for ctx.Err() == nil {
					from := time.Now()
					r, _ := http.NewRequestWithContext(ctx, http.MethodPost, cfg.Host+"/api/v1/namespaces/default/configmaps",
						strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"made"}}`))
					r.Header.Set("Content-Type", "application/json")
					answer, err := plain.Do(r)
					if err == nil {
						_ = answer.Body.Close()
						<-ctx.Done()
						return nil
					}
					took = max(took, time.Since(from))
				}
				return nil
			})
			w.Settled(func() error {
				if !w.Get(configMap("made", nil)) {
					return errors.New("it is not made")
				}
				return nil
			})
		})
		sound(t, h)
		if took < 45*time.Second || took > 50*time.Second {
			t.Errorf("%s: the write fails after %v, want 45s", name, took)
		}
	}
}

// Discovery under a lock that another goroutine waits for does not stop the clock.
func TestRunMain_DiscoveryTakesNoTime_K14(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{kit.Partition(5 * time.Second).At(time.Second)}}, 1, func(w *kit.World) {
		started := time.Now()
		kit.RunMain(w, "program", func(ctx context.Context, cfg *rest.Config) error {
			discovers := discovery.NewDiscoveryClientForConfigOrDie(cfg)
			var lock sync.Mutex
			var group sync.WaitGroup
			defer group.Wait()
			for range 2 {
				group.Go(func() {
					for ctx.Err() == nil {
						lock.Lock()
						_, err := discovers.ServerGroups()
						lock.Unlock()
						if since := time.Since(started); (err != nil) != (since > time.Second && since < 6*time.Second) {
							w.Errorf("discovery at %v: %v", since, err)
						}
						<-time.After(700 * time.Millisecond)
					}
				})
			}
			return nil
		})
	})
	sound(t, h)
}

// Faults inside of a reconcile have no subject where the kit sees none, and happen in a
// program that has a manager.
func TestRunMain_FaultsOfReconcilesGoElsewhere_K14(t *testing.T) {
	plan := kit.Plan{kit.Panic().At(time.Second), kit.Hang(time.Second).At(2 * time.Second), kit.Stall(time.Second).At(3 * time.Second)}
	h := kit.Run(t, kit.Config{Faults: plan}, 1, polled)
	sound(t, h)
	for _, e := range h.Events {
		if e.What == kit.Fault {
			t.Errorf("a fault that nothing can feel is recorded: %s", e)
		}
	}
	h = kit.Run(t, kit.Config{Faults: plan}, 1, func(w *kit.World) {
		w.Run(setUpCopier)
		kit.RunMain(w, "idle", func(ctx context.Context, _ *rest.Config) error { <-ctx.Done(); return nil })
		w.Settled(copied(w))
		w.Create(configMap("one", nil))
	})
	sound(t, h)
	faults := 0
	for _, e := range h.Events {
		if e.What == kit.Fault {
			faults++
		}
	}
	if faults != 3 {
		t.Errorf("%d faults of reconciles, want 3, all in the program with a manager", faults)
	}
}

// A program that acts on what it read before it failed is found: it takes a lost answer for
// a failure, and writes the counter's next name.
func TestRunMain_SeedsFindADuplicate_K14(t *testing.T) {
	tries := func(ctx context.Context, cfg *rest.Config) error {
		cl, err := client.New(cfg, clientscheme.Scheme, client.Options{})
		if err != nil {
			return err
		}
		for n := 0; ctx.Err() == nil; n++ {
			err := cl.Create(ctx, configMap(fmt.Sprint("only-", n), nil))
			if err == nil || apierrors.IsAlreadyExists(err) {
				break
			}
		}
		<-ctx.Done()
		return nil
	}
	h, runs := kit.Find(t, kit.Config{}, 1, 40, func(w *kit.World) {
		kit.RunMain(w, "program", tries)
		w.Settled(func() error {
			made := 0
			for m, err := range client.List[*corev1.ConfigMap](context.Background(), w.Client(), client.InNamespace("default")) {
				if err == nil && strings.HasPrefix(m.Name, "only-") {
					made++
				}
			}
			if made != 1 {
				return fmt.Errorf("%d objects, want 1", made)
			}
			return nil
		})
	}, func(h *kit.History) bool { return len(h.Violations) > 0 })
	if h == nil {
		t.Fatalf("no violation in %d seeds", runs)
	}
	finds(t, h, "V17", "2 objects, want 1")
}

func TestRunMain_AProgramThatEndsAgainAndAgainIsExplained_K14(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, func(w *kit.World) {
		kit.RunMain(w, "program", func(context.Context, *rest.Config) error { return errors.New("no such flag") })
	})
	finds(t, h, "V7", "the main of program returned, the last time no such flag")
}

func TestRunMain_WithoutAMainSaysWhatToGive_K6(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, func(w *kit.World) { kit.RunMain(w, "program", nil) })
	finds(t, h, "scenario", "give the function that runs the program")
}

// A program whose writes are refused forever does not come to rest.
func TestRunMain_RequestsThatFailAreNoRest_K14(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, func(w *kit.World) {
		kit.RunMain(w, "program", func(ctx context.Context, cfg *rest.Config) error {
			cl, err := client.New(cfg, clientscheme.Scheme, client.Options{})
			for ctx.Err() == nil && err == nil {
				_ = cl.Create(ctx, configMap("Not a name", nil))
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
				}
			}
			return err
		})
	})
	finds(t, h, "V7", "no rest within 30m0s")
}
