// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hooks are the changes to a copy of controller-runtime: the defaults of its three hooks
// become variables.
var hooks = map[string][]swap{
	"pkg/cluster/cluster.go": {
		{`options.NewClient = client.New`, `options.NewClient = DefaultNewClient`, 1},
		{`options.NewCache = cache.New`, `options.NewCache = DefaultNewCache`, 1},
		{"\n// Options are", "\nvar (\n\tDefaultNewClient client.NewClientFunc = client.New\n\tDefaultNewCache cache.NewCacheFunc = cache.New\n)\n\n// Options are", 1},
	},
	"pkg/controller/controller.go": {
		{"\tif options.NewQueue == nil {\n", `	if q, ok := DefaultNewQueue.(func(string, workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request]); ok && options.NewQueue == nil {
		options.NewQueue = q
	}
	if options.NewQueue == nil {
`, 1},
		{"\n// ReconcileIDFromContext gets", "\nvar DefaultNewQueue any\n\n// ReconcileIDFromContext gets", 1},
	},
}

// hooked are the suites that run with flyball's cache, client and queue as the defaults,
// and the changes to their tests, which create caches, clients and queues themselves.
var hooked = []struct {
	name  string
	swaps map[string][]swap
}{
	{name: "builder", swaps: map[string][]swap{"controller_test.go": {{` cache.New(`, ` cluster.DefaultNewCache(`, 1}, {
		`	"sigs.k8s.io/controller-runtime/pkg/cache"`, `	"sigs.k8s.io/controller-runtime/pkg/cache"` + "\n\t" + `"sigs.k8s.io/controller-runtime/pkg/cluster"`, 1,
	}}}},
	{name: "client", swaps: map[string][]swap{
		"client_test.go":            {{` client.New(`, ` underneath.NewClient(`, many}, imported("sigs.k8s.io/controller-runtime/pkg/client")},
		"dryrun_test.go":            {{` client.New(`, ` underneath.NewClient(`, 1}, imported("sigs.k8s.io/controller-runtime/pkg/client")},
		"namespaced_client_test.go": {{` client.New(`, ` underneath.NewClient(`, 1}, imported("sigs.k8s.io/controller-runtime/pkg/client")},
	}},
	{name: "controller"},
	{name: "handler", swaps: map[string][]swap{"eventhandler_test.go": {
		{`workqueue.NewTyped[reconcile.Request]()`, `underneath.NewQueue()`, 1},
		imported("sigs.k8s.io/controller-runtime/pkg/controller/controllertest"),
	}}},
	{name: "manager"},
	{name: "source", swaps: map[string][]swap{
		"source_suite_test.go":       {{` cache.New(`, ` underneath.New(`, 1}, imported("sigs.k8s.io/controller-runtime/pkg/cache")},
		"source_test.go":             {queueSwap(9), imported("sigs.k8s.io/controller-runtime/pkg/source")},
		"source_integration_test.go": {queueSwap(4), imported("sigs.k8s.io/controller-runtime/pkg/source")},
	}},
}

// queueSwap replaces client-go's queue by ours.
func queueSwap(times int) swap {
	return swap{"workqueue.NewTypedRateLimitingQueueWithConfig(", "underneath.NewQueueWithConfig(", times}
}

// TestSuites_OnTheBridge runs controller-runtime's suites with flyball's cache, client and
// queue as the defaults of its hooks.
func TestSuites_OnTheBridge(t *testing.T) {
	t.Parallel()
	simulated, differ := simulatedBinaries(t), differences(t, "BRIDGE.txt")
	at := hookedCopy(t)
	modfile := replaced(t, at)
	for _, s := range hooked { // before any is built: they import each other
		dir := filepath.Join(at, "pkg", s.name)
		swapIn(t, dir, s.swaps)
		if err := os.WriteFile(filepath.Join(dir, "flyball_test.go"), []byte(strings.ReplaceAll(setHooks, "PACKAGE", s.name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binaries := t.TempDir()
	build := []string{"test", "-vet=off", "-c", "-ldflags=-s -w", "-modfile=" + modfile, "-o", binaries + string(filepath.Separator)}
	for _, s := range hooked { // at once: each command alone would compile what they have in common
		build = append(build, theirs+s.name)
	}
	output(t, "go", build...)
	for _, s := range hooked {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			built := &suite{name: s.name, dir: filepath.Join(at, "pkg", s.name), binary: filepath.Join(binaries, s.name+".test")}
			t.Run("simulated", func(t *testing.T) { hold(t, built.run(t, simulated), differ[s.name]) })
			t.Run("real", func(t *testing.T) { hold(t, built.run(t, realBinaries(t)), differ[s.name]) })
		})
	}
}

// setHooks is the file that sets the defaults, in each suite.
const setHooks = `package PACKAGE_test

import (
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"
)

func init() {
	cluster.DefaultNewCache, cluster.DefaultNewClient = bridge.NewCache, bridge.NewClient
	controller.DefaultNewQueue = bridge.NewQueue[reconcile.Request]
}
`

// hookedCopy copies controller-runtime, changes the hooks, and returns the copy's
// directory. Tests that import the bridge, which imports the package that they test, are
// possible only with the sources in place.
func hookedCopy(t *testing.T) string {
	t.Helper()
	from := strings.TrimSpace(output(t, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime"))
	to := copyFS(t, "controller-runtime", os.DirFS(from))
	swapIn(t, to, hooks)
	return to
}

// replaced returns a go.mod of this module in which controller-runtime is at dir.
func replaced(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "go.mod")
	for from, file := range map[string]string{"go.mod": to, "go.sum": strings.TrimSuffix(to, "mod") + "sum"} {
		text, err := os.ReadFile(filepath.Join("..", from))
		if err != nil {
			t.Fatal(err)
		}
		if from == "go.mod" {
			text = append(text, "\nreplace sigs.k8s.io/controller-runtime => "+dir+"\n"...)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}
