// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/informer"
)

func TestInformer_OfFactoryRunsUntilItsContextEnds_G11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := clientgo.NewSharedIndexInformer(informer.For[cmap](newFactory(t)), clientgo.Options{})
		join(t, i, &log{}, cache.HandlerOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		i.RunWithContext(ctx)
		if ctx.Err() == nil {
			t.Error("Run returned before its context ended")
		}
		if !i.IsStopped() {
			t.Error("Run has returned, and the informer is not stopped")
		}
		for what, err := range map[string]error{
			"AddEventHandler": errOf(i.AddEventHandler(&log{})),
			"AddIndexers":     i.AddIndexers(cache.Indexers{"x": cache.MetaNamespaceIndexFunc}),
		} {
			if err == nil || !strings.Contains(err.Error(), "has stopped already") {
				t.Errorf("%s after the end: %v, want that it has stopped already", what, err)
			}
		}
	})
}

func errOf[A any](_ A, err error) error { return err }

func TestInformer_RunsOnce_G11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"))
		i := adapt(s, informer.Options{})
		stop := run(t, i)
		synctest.Wait()
		i.RunWithContext(t.Context()) // returns at once, or the test hangs
		if i.IsStopped() {
			t.Error("a second Run stopped the informer that another runs")
		}
		stop()
		if !i.IsStopped() {
			t.Error("Run has returned, and the informer is not stopped")
		}
	})
}

// unanswered returns a factory on a network without answers.
func unanswered(t *testing.T) *informer.SharedInformerFactory {
	f, err := informer.NewSharedInformerFactory(&rest.Config{Host: "http://flyball.invalid", Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}}, clientscheme.Scheme, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A transform and managedFields can be set until the informer has started, even
// while its factory runs.
func TestInformer_MayBeSetUpWhileTheFactoryRuns_G11(t *testing.T) {
	keep := func(obj any) (any, error) { return obj, nil }
	for range 300 { // races show only occasionally
		synctest.Test(t, func(t *testing.T) {
			f := unanswered(t)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- f.Run(ctx) }()
			synctest.Wait()

			deferred := informer.For[cmap](f, informer.Scope{Deferred: true})
			i := clientgo.NewSharedIndexInformer(deferred, clientgo.Options{})
			if err := i.SetTransform(keep); err != nil {
				t.Errorf("SetTransform before the start: %v", err)
			}
			if err := i.SetWatchErrorHandler(nil); err != nil {
				t.Errorf("SetWatchErrorHandler before the start: %v", err)
			}
			if i.HasSynced() {
				t.Error("an informer that has not started has synced")
			}
			if err := deferred.Start(); err != nil {
				t.Errorf("Start: %v", err)
			}
			if err := i.SetTransform(keep); err == nil {
				t.Error("SetTransform after the start is no error")
			}
			if err := deferred.KeepManagedFields(); err != nil {
				t.Errorf("managedFields were asked for before the start, and then: %v", err)
			}
			other := informer.ForMetadata(f, configMaps)
			if err := other.KeepManagedFields(); err == nil {
				t.Error("an informer that starts at once takes managedFields, or not, as its goroutine runs")
			}
			cancel()
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
}
