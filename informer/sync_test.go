// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
)

// The wait for sync returns the states, whether it succeeds or not.
func TestInformer_WaitForSyncReturnsTheStates_I9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		s.Fail(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no right")))
		i := informer.New[cmap](s, configMaps, informer.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go i.Run(ctx)

		short, end := context.WithTimeout(ctx, time.Second)
		defer end()
		current, err := i.WaitForSync(short)
		failed, ok := errors.AsType[*informer.SyncError](err)
		if !ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got error %v, want an *informer.SyncError because of the deadline", err)
		}
		for name, got := range map[string]state.Informer{"the answer": current, "the error": failed.States[0]} {
			if got.Kind != configMaps || got.Synced || len(got.Scopes) != 1 || got.Scopes[0].State != state.Forbidden {
				t.Errorf("%s has the state %+v, want ConfigMap, Forbidden: the caller cannot tell why", name, got)
			}
		}
		for _, part := range []string{"not synced: ConfigMap in all namespaces: Forbidden", "no right", "next try"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("got %q, want it to say %q", err, part)
			}
		}

		s.Fail(nil)
		current, err = i.WaitForSync(ctx)
		if err != nil || !current.Synced || len(current.Scopes) != 1 || !current.Scopes[0].Synced {
			t.Errorf("got %+v, %v; want the state of what has synced", current, err)
		}
	})
}

// A wait that nothing else would end ends with the run.
func TestInformer_WaitForSyncEndsWithTheRun_I9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.Fail(errors.New("away"))
		i := informer.New[cmap](s, configMaps, informer.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go i.Run(ctx)
		current, err := i.WaitForSync(t.Context())
		if _, ok := errors.AsType[*informer.SyncError](err); !ok || !strings.Contains(err.Error(), "the informer has stopped") || current.Synced {
			t.Errorf("got %+v, %v; want a *informer.SyncError that says that the informer has stopped", current, err)
		}
	})
}
