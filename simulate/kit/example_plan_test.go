// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/simulate/kit"
)

var plan = kit.Plan{
	kit.LoseResponse().OnWrite("Deployment", 2),                // the second write of a Deployment is stored, its answer is lost
	kit.CloseWatches().Of("ConfigMap").OnEvent("ConfigMap", 3), // before the third event
	kit.Crash(time.Second).AfterWrite("create Pod", 1),         // the first Pod is created, and the process never learns of it
	kit.Pause(5*time.Second).BeforeWrite("Website/status", 2),  // the second status is written five seconds late
	kit.Crash(time.Second).At(4 * time.Second),                 // another process starts a second later
	kit.Cut().Rate(0.2), // again and again, every five seconds on average
}

// A failed test prints the faults that lead to the failure in the same way, as Go code.
func ExamplePlan() {
	fmt.Printf("%#v\n", plan[:3])
	// Output:
	// kit.Plan{
	// 	kit.LoseResponse().OnWrite("Deployment", 2),
	// 	kit.CloseWatches().Of("ConfigMap").OnEvent("ConfigMap", 3),
	// 	kit.Crash(time.Second).AfterWrite("create Pod", 1),
	// }
}
