// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate"
)

// waiting matches what kubectl prints while a rollout is in progress.
const waiting = `^Waiting for deployment (spec update to be observed|"shop" rollout to finish: ([0-9]+ out of [0-9]+ new replicas have been updated|` +
	`[0-9]+ old replicas are pending termination|[0-9]+ of [0-9]+ updated replicas are available))\.\.\.$`

// kubectl's waits end when actors do a cluster's work.
func TestKubectl_SeesWhatActorsDo(t *testing.T) {
	binaries, err := envtest.Binaries(t.Context(), envtest.BinariesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stories, err := filepath.Glob("testdata/actors/*.txt")
	if err != nil || len(stories) == 0 {
		t.Fatalf("%d stories: %v", len(stories), err)
	}
	t.Setenv("WAITING", waiting)
	for _, path := range stories {
		t.Run(filepath.Base(path), func(t *testing.T) {
			l := serve(t, false)
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			group.Go(func() {
				if err := l.Server().RunActors(ctx, simulate.Actors{GarbageCollector: true, Namespaces: true, Workloads: true}); err != nil {
					t.Error(err)
				}
			})
			defer group.Wait()
			defer cancel()
			s := &shell{t: t, dir: t.TempDir(), path: binaries}
			s.log(l.Kubeconfig(), "actors")
			s.hold(path)
		})
	}
}
