// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
	"github.com/flyball-dev/flyball/source"
)

var pathEvents = flag.Int("path.events", 2, "watch events that TestPath_EachEventIsReconciled sends; make path counts what runs for each")

// Each watch event, from the bytes of the answer to the reconciler's Get, in a manager without
// options.
func TestPath_EachEventIsReconciled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simtest.New(t, nil)
		mgr, err := manager.New(manager.Options{Config: s.Config, Scheme: s.Client.Scheme(), MetricsAddress: "0", HealthAddress: "0"})
		if err != nil {
			t.Fatal(err)
		}
		maps, got := informer.For[*corev1.ConfigMap](mgr.Informers()), ""
		c := reconcile.New("path", func(_ context.Context, key kube.Key) (reconcile.Result, error) {
			obj, err := maps.Lister().Get(key)
			if err == nil {
				got = obj.Data["v"]
			}
			return reconcile.Result{}, err
		}, reconcile.Options{})
		c.Watch(source.Kind(maps, source.Self))
		if err := mgr.Add(c); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Run(ctx) }()
		time.Sleep(time.Minute)
		for i := range *pathEvents {
			obj := configMap("a", fmt.Sprint(i))
			obj.Namespace = "default"
			if _, err := s.Put(obj); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			if got != fmt.Sprint(i) {
				t.Fatalf("a second after event %d the reconciler has read %q", i, got)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
