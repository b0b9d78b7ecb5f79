// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
)

func TestInformer_KindThatComesAndGoesHarmsOnlyItself_A10(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Uninstall(widgets)
		w.Store(configMap("m", "1"))
		i := informer.For[*widget](w.factory)
		other := informer.For[cmap](w.factory)
		start(w)
		pass(10 * time.Minute)
		stands(t, i, state.NotServed, "404 page not found")
		holds(t, other, "m=1", "another kind suffers")
		if n := w.asked("get", "test.example.com"); n > 30 {
			t.Errorf("%d requests in ten minutes for a kind that is not there, want 30 at most", n)
		}

		w.Install(widgetKind)
		w.Store(newWidget("a", "1"))
		pass(70 * time.Second)
		holds(t, i, "a=1", "the kind is there, and nobody looked")

		w.Uninstall(widgets)
		pass(time.Minute)
		holds(t, i, "", "objects of a kind that is gone are gone")
		stands(t, i, state.NotServed, "")
		stands(t, other, state.Live, "")

		w.Install(widgetKind)
		w.Store(newWidget("b", "1"))
		pass(70 * time.Second)
		holds(t, i, "b=1", "the kind is back, and nobody looked")
	})
}

func TestInformer_MissingRightHarmsOnlyItsKindAndHeals_A11(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"), newWidget("w", "1"))
		for _, verb := range []string{"list", "watch"} {
			w.Deny(verb, configMaps)
		}
		i := informer.For[cmap](w.factory)
		other := informer.For[*widget](w.factory)
		start(w)
		pass(10 * time.Minute)
		stands(t, i, state.Forbidden, `User "simulated" cannot`)
		stands(t, i, state.Forbidden, "configmaps")
		holds(t, other, "w=1", "another kind suffers")
		if n := w.lists(configMaps); n > 30 {
			t.Errorf("%d lists in ten minutes without the right, want 30 at most", n)
		}
		for _, verb := range []string{"list", "watch"} {
			w.Allow(verb, configMaps)
		}
		pass(70 * time.Second)
		holds(t, i, "a=1", "the right is granted, and nobody looked")
	})
}

func TestInformer_RevokedRightEndsWithTheStream_A11(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		i := informer.For[cmap](w.factory)
		start(w)
		pass(time.Minute)
		for _, verb := range []string{"list", "watch"} {
			w.Deny(verb, configMaps)
		}
		pass(12 * time.Minute)
		stands(t, i, state.Forbidden, "")
		holds(t, i, "a=1", "what was known stays, and the state says how old it is")
		w.Store(configMap("a", "2"))
		for _, verb := range []string{"list", "watch"} {
			w.Allow(verb, configMaps)
		}
		pass(70 * time.Second)
		holds(t, i, "a=2", "the right is granted again, and nobody looked")
	})
}

func TestInformer_RotatedTokenIsReadAgain_A12(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(t *testing.T, token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		write(t, "first")
		w.AcceptTokens("first")
		w.Store(configMap("a", "1"))
		w.connect(&rest.Config{Host: "http://simulated", Transport: w.Network.Transport(), BearerTokenFile: file}, informer.Options{})
		i := informer.For[cmap](w.factory)
		start(w)
		pass(5 * time.Second) // the file is read once a minute in any case
		holds(t, i, "a=1", "the first token is not sent")
		write(t, "second")
		w.AcceptTokens("second")
		w.CloseWatches(configMaps)
		w.Store(configMap("a", "2"))
		pass(100 * time.Millisecond)
		stands(t, i, state.Live, "")
		holds(t, i, "a=2", "the token was rotated, and the old one is sent")
		if n := w.logged(""); n != 0 {
			t.Errorf("%d lines of log, want none: a token that is rotated is no trouble: %q", n, w.journal.lines)
		}
		refused := 0
		for _, r := range w.Served() {
			if r.Status == 401 {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%d requests were refused with 401, want 1: the token is read again for the second", refused)
		}
		// Without a valid token it says so, and comes back by itself.
		w.AcceptTokens("third")
		w.CloseWatches(configMaps)
		pass(2 * time.Minute)
		stands(t, i, state.Unauthorized, "Unauthorized")
		write(t, "third")
		w.Store(configMap("a", "3"))
		pass(2 * time.Minute)
		holds(t, i, "a=3", "a valid token is there, and nobody looked")
	})
}

func TestInformer_RetryAfterOfAnOverloadedServerIsHonoured_A13(t *testing.T) {
	for _, code := range []int{429, 503} {
		simulated(t, informer.Options{}, func(t *testing.T, w *world) {
			w.Store(configMap("a", "1"))
			w.Overload(3, code, 20)
			i := informer.For[cmap](w.factory)
			start(w)
			pass(2 * time.Minute)
			holds(t, i, "a=1", "it has not come back")
			var before time.Time
			for n, r := range w.Served() {
				if n > 0 && n <= 3 && r.At.Sub(before) < 20*time.Second {
					t.Errorf("%d: request %d came %s after a refusal with Retry-After 20", code, n, r.At.Sub(before))
				}
				before = r.At
			}
		})
	}
}

func TestInformer_RefusedConnectionsAreTriedWithBackoff_A13(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		i := informer.For[cmap](w.factory)
		start(w)
		w.Network.Refuse(true)
		w.Network.Cut()
		pass(10 * time.Minute)
		stands(t, i, state.Stale, "refused")
		holds(t, i, "a=1", "the old state must be served meanwhile")
		w.Store(configMap("a", "2"))
		w.Network.Refuse(false)
		pass(31 * time.Second)
		holds(t, i, "a=2", "the server is back, and nobody looked")
	})
}

func TestInformer_BrokenConversionHarmsOnlyItsKind_B3(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(newWidget("a", "1"), configMap("m", "1"))
		w.FailConversion(widgets, true)
		i := informer.For[*widget](w.factory)
		other := informer.For[cmap](w.factory)
		start(w)
		pass(5 * time.Minute)
		stands(t, i, state.Stale, "conversion webhook")
		holds(t, other, "m=1", "another kind suffers")
		w.FailConversion(widgets, false)
		pass(31 * time.Second)
		holds(t, i, "a=1", "the webhook is back, and nobody looked")
	})
}

// A kind that is served, but has no lists, is not called absent, and harms no other.
func TestInformer_KindWithoutListsIsMisuse_A38(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		i := informer.ForKind(w.factory, corev1.SchemeGroupVersion.WithKind("Binding"))
		maps := informer.For[cmap](w.factory)
		bounded, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begun := time.Now()
		waits := make(chan error, 2)
		go func() {
			_, err := i.WaitForSync(bounded)
			waits <- err
		}()
		go func() {
			_, err := w.factory.WaitForSync(bounded)
			waits <- err
		}()
		start(w)
		for range 2 {
			err := <-waits
			if _, is := errors.AsType[*informer.SyncError](err); !is || !strings.Contains(err.Error(), "cannot list it") || time.Since(begun) > time.Minute {
				t.Errorf("the wait for sync ends with %v after %s, want at once and with the reason: it can never sync", err, time.Since(begun))
			}
		}
		pass(time.Minute)
		s := i.Snapshot().Scopes[0]
		if s.State != state.Misuse || !strings.Contains(s.Reason, "cannot list it") || strings.Contains(s.Reason, "not served") {
			t.Errorf("the state is %s (%s); want Misuse, and that the kind has no lists", s.State, s.Reason)
		}
		holds(t, maps, "a=1", "a kind without lists holds up another")
	})
}
