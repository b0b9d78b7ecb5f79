// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/envtest"
)

const (
	// clusterAPI is an operator with some 40 kinds, and with webhooks for admission and conversion.
	clusterAPI = "sigs.k8s.io/cluster-api@v1.14.2"

	// clusterAPISuitesAtLeast is how many of its packages have a suite on a server. Finding fewer
	// means that the search is broken.
	clusterAPISuitesAtLeast = 23
)

// clusterAPISwaps are the changes to a copy of Cluster API: the one line, where its suites create
// their manager, and no informers of its own, which only add metrics.
var clusterAPISwaps = map[string][]swap{
	"internal/test/envtest/environment.go": {
		{`ctrl.NewManager(env.Config, options)`, `ctrl.NewManager(env.Config, bridge.Options(options))`, 1},
		{"\t\"sigs.k8s.io/cluster-api/version\"\n", "\t\"sigs.k8s.io/cluster-api/version\"\n\tbridge \"github.com/flyball-dev/flyball/bridge/controllerruntime\"\n", 1},
	},
	"core/setup/setup.go": {
		{"\t\tNewInformer: capicontrollerutil.NewInformerFunc(scheme, controllerName),\n", "", 1},
		{"\tcapicontrollerutil \"sigs.k8s.io/cluster-api/util/controller\"\n", "", 1},
	},
}

// clusterAPIDiffers are the suites that fail on the simulated server, with the reason.
var clusterAPIDiffers = map[string]string{
	"controllers/clustercache":                             "the first namespaces have no managedFields",
	"controllers/crdmigrator":                              "objects stored in a version that their CRD has no more cannot be read",
	"controlplane/kubeadm/reconcilers/kubeadmcontrolplane": "expressions of admission policies are only parsed",
	"internal/topology/upgrade":                            "not known: the suite changes CRDs and their webhooks under the operator",
}

// TestOperators_OnTheBridge runs the suites of Cluster API with the one line.
func TestOperators_OnTheBridge(t *testing.T) {
	t.Parallel()
	simulated, at := simulatedBinaries(t), clusterAPICopy(t)
	all := clusterAPISuites(t, at)
	if len(all) < clusterAPISuitesAtLeast {
		t.Fatalf("%d suites start a server, at least %d did before", len(all), clusterAPISuitesAtLeast)
	}
	for _, pkg := range all {
		t.Run(strings.ReplaceAll(pkg, "/", "."), func(t *testing.T) {
			t.Parallel()
			binary := filepath.Join(t.TempDir(), "suite")
			outputIn(t, at, "go", "test", "-mod=mod", "-vet=off", "-c", "-ldflags=-s -w", "-o", binary, "./"+pkg)
			dir := filepath.Join(at, pkg)
			t.Run("simulated", func(t *testing.T) { passes(t, dir, binary, simulated, clusterAPIDiffers[pkg]) })
			t.Run("real", func(t *testing.T) { passes(t, dir, binary, realBinaries(t), "") })
		})
	}
}

// clusterAPICopy copies Cluster API, changes it, and returns the copy's directory.
func clusterAPICopy(t *testing.T) string {
	t.Helper()
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(output(t, "go", "mod", "download", "-json", clusterAPI)), &module); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(module.Dir)); err != nil {
		t.Fatal(err)
	}
	swapIn(t, to, clusterAPISwaps)
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	const flyball, theBridge = "github.com/flyball-dev/flyball", "github.com/flyball-dev/flyball/bridge/controllerruntime"
	_, version, _ := strings.Cut(clusterAPI, "@")
	outputIn(t, to, "go", "mod", "edit",
		"-dropreplace=sigs.k8s.io/cluster-api/api", "-require=sigs.k8s.io/cluster-api/api@"+version,
		"-require="+theBridge+"@v0.0.0", "-replace="+theBridge+"="+filepath.Join(root, "bridge", "controllerruntime"),
		"-replace="+flyball+"="+root, "-replace="+flyball+"/simulate="+filepath.Join(root, "simulate"))
	outputIn(t, to, "go", "list", "-mod=mod", "-deps", "-test", "./...") // completes go.mod and go.sum
	return to
}

// clusterAPISuites returns the packages that start a server.
func clusterAPISuites(t *testing.T, at string) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(at), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "suite_test.go" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(at, path))
		if bytes.Contains(text, []byte("envtest.Run(")) {
			all = append(all, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ownLog matches lines of the operator's log, which a failure report leaves out.
var ownLog = regexp.MustCompile(`(?m)^[IWEF][0-9]{4} .*\n`)

// passes fails unless the suite passes, in one of three runs at most, as a spec of the others
// does. If it is known to differ, it must fail.
func passes(t *testing.T, dir, binary, binaries, differs string) {
	t.Helper()
	mine := mark + filepath.Join(t.TempDir(), "suite")
	for attempt := 1; ; attempt++ {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		cmd := exec.CommandContext(ctx, binary, "-test.timeout="+within.String())
		cmd.Dir, cmd.Env = dir, append(os.Environ(), envtest.AssetsVariable+"="+binaries, mine)
		said, err := cmd.CombinedOutput()
		said = ownLog.ReplaceAll(said, nil)
		cancel()
		if ended := endLeftovers(mine); ended != nil {
			t.Errorf("end the servers that the suite left running: %v", ended)
		}
		switch {
		case err == nil && differs != "":
			t.Errorf("the suite passes: take it out of the known differences (%s)", differs)
			return
		case err == nil:
			return
		case differs != "":
			t.Logf("the suite fails, as is known: %s", differs)
			return
		}
		if attempt == 3 {
			t.Fatalf("%v\n%s", err, said)
		}
		t.Logf("the suite runs again: %v\n%.5000s", err, said)
	}
}
