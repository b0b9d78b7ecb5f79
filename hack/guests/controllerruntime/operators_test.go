// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// operators are the suites of two operators.
var operators = []struct{ module, pkg, leaveOut string }{
	{"sigs.k8s.io/jobset", "test/integration/controller", ""},
	{"sigs.k8s.io/jobset", "test/integration/webhook", ""},
	{"sigs.k8s.io/lws", "test/integration/controllers", chance},
	{"sigs.k8s.io/lws", "test/integration/webhooks", ""},
}

// chance matches specs whose outcome depends on how fast the operator is, also on
// controller-runtime's informers and on a real server. Two pass if it reconciles between
// two writes of one request: a Pod without a node is marked as being deleted, and then
// removed. The third changes the size and immediately gives each leader Pod the revision of
// the StatefulSet: if that is still the old one, and the operator writes the new one before
// the spec checks the condition, the Pods stay outdated, because no StatefulSet controller
// replaces them. The fourth reads a new object and updates its status once, without a
// retry: that is a conflict if the operator writes its first status in between.
const chance = "Pod restart will delete the pod group when restart policy is RecreateGroupOnPodRestart$|only gets restarted once during rolling update$" +
	"|resize should update the size of the replicas$|Test default progressing state$"

// noMetrics disables the metrics server of a suite's manager, because all suites would use
// the same port.
const noMetrics = "-X sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=0"

// The suites are built in their own modules, with the older client-go and
// controller-runtime that these require.
func TestOperators(t *testing.T) {
	t.Parallel()
	simulated := simulatedBinaries(t)
	for _, o := range operators {
		name := filepath.Base(o.module) + "." + filepath.Base(o.pkg)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module := strings.TrimSpace(output(t, "go", "list", "-m", "-f", "{{.Dir}}", o.module))
			s := &suite{name: name, dir: filepath.Join(module, o.pkg), binary: filepath.Join(t.TempDir(), "suite"), assets: true, leaveOut: o.leaveOut}
			outputIn(t, module, "go", "test", "-mod=readonly", "-vet=off", "-c", "-ldflags=-s -w "+noMetrics, "-o", s.binary, "./"+o.pkg)
			hold(t, s.run(t, simulated), nil)
		})
	}
}
