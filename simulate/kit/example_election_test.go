// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"testing"
	"time"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/kit"
)

var replicated = kit.Config{
	Seeds:   20,
	CRDs:    []string{"config/crd.yaml"},
	Scheme:  testScheme(),
	Manager: manager.Options{LeaderElection: &manager.LeaderElection{ID: "website.example.dev", Namespace: "default"}},
	Faults: kit.Swarm(
		kit.Crash(time.Second), kit.Pause(20*time.Second), kit.Partition(20*time.Second), kit.ClockStep(time.Hour),
	),
	FaultPhase: time.Minute,
}

func handOver(w *kit.World) {
	w.RunAs("replica-a", setup)
	w.RunAs("replica-b", setup)
}

// The replicas elect a leader, and the faults last longer than its Lease.
func ExampleConfig_leaderElection() {
	var t *testing.T // that of the test
	kit.Test(t, replicated, handOver)
}
