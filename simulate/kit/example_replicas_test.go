// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"testing"
	"time"

	"github.com/flyball-dev/flyball/simulate/kit"
)

func twoReplicas(w *kit.World) {
	w.RunAs("replica-a", setup)
	w.RunAs("replica-b", setup)
	w.Sleep(5 * time.Second)
	w.Do(kit.Pause(10 * time.Second).In("replica-a"))
}

// Each process has a name, a manager, a network and faults of its own.
func ExampleWorld_RunAs() {
	var t *testing.T // that of the test
	kit.Test(t, websites, twoReplicas)
}
