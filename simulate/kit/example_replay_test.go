// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"testing"

	"github.com/flyball-dev/flyball/simulate/kit"
)

// The set-up is the function that main calls with its manager. The recording is named on the command
// line: go test -run TestReplay -kit.bundle=flyball.tar.zst
func ExampleReplay() {
	var t *testing.T // that of TestReplay

	kit.Replay(t, "", kit.Config{CRDs: []string{"config/crd"}}, setup)
}
