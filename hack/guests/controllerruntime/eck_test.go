// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// eck is Elastic's operator, ECK.
var eck = foreign{
	module: "github.com/elastic/cloud-on-k8s/v3@v3.5.0",
	swaps: map[string][]swap{"pkg/utils/test/integration.go": {
		{`manager.New(Config, opts)`, `manager.New(Config, options(opts))`, 1},
	}},
	files:    map[string]string{"pkg/utils/test/flyball.go": theOptions("test")},
	tags:     "integration",
	packages: []string{"./pkg/..."},
}

// eckSuites are its packages with tests that start a server.
var eckSuites = []string{
	"pkg/controller/common/watches", "pkg/controller/kibana", "pkg/controller/license",
	"pkg/controller/license/trial",
}

// eckChance is a test of client-go's queue alone, which allows it ten milliseconds.
const eckChance = "TestDelayingQueueInvariants"

// TestECK_OnTheBridge runs ECK's suites with the one line.
func TestECK_OnTheBridge(t *testing.T) {
	t.Parallel()
	simulated, at := simulatedBinaries(t), eck.copied(t)
	for _, pkg := range eckSuites {
		t.Run(strings.ReplaceAll(pkg, "/", "."), func(t *testing.T) {
			t.Parallel()
			binary, dir := eck.build(t, at, pkg), filepath.Join(at, pkg)
			t.Run("real", func(t *testing.T) { passes(t, dir, binary, realBinaries(t), eckChance) })
			t.Run("simulated", func(t *testing.T) { passes(t, dir, binary, simulated, eckChance) })
		})
	}
}
