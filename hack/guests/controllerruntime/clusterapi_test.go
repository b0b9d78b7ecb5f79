// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/envtest"
)

// clusterAPI is an operator with some 40 kinds, and with webhooks for admission and conversion.
var clusterAPI = foreign{
	module:   "sigs.k8s.io/cluster-api@v1.14.2",
	swaps:    clusterAPISwaps,
	mod:      []string{"-dropreplace=sigs.k8s.io/cluster-api/api", "-require=sigs.k8s.io/cluster-api/api@v1.14.2"},
	packages: []string{"./..."},
}

// clusterAPISuitesAtLeast is how many of its packages have a suite on a server. Finding fewer
// means that the search is broken.
const clusterAPISuitesAtLeast = 23

// clusterAPISwaps are the changes to a copy of Cluster API: the one line, where its suites create
// managers, and no informers of its own, which only add metrics.
var clusterAPISwaps = map[string][]swap{
	"internal/test/envtest/environment.go": {
		{`ctrl.NewManager(env.Config, options)`, `ctrl.NewManager(env.Config, bridge.Options(options))`, 1},
		bridgeImported(`"sigs.k8s.io/cluster-api/version"`),
	},
	"controllers/crdmigrator/crd_migrator_test.go": {
		{`ctrl.NewManager(env.Config, options)`, `ctrl.NewManager(env.Config, bridge.Options(options))`, 1},
		bridgeImported(`ctrl "sigs.k8s.io/controller-runtime"`),
	},
	"bootstrap/kubeadm/setup/setup.go":    withoutInformers,
	"controlplane/kubeadm/setup/setup.go": withoutInformers,
	"core/setup/setup.go":                 withoutInformers,
}

var withoutInformers = []swap{
	{"\t\tNewInformer: capicontrollerutil.NewInformerFunc(scheme, controllerName),\n", "", 1},
	{"\tcapicontrollerutil \"sigs.k8s.io/cluster-api/util/controller\"\n", "", 1},
}

// withInformers is in the bridge's log if a manager has informers of its own.
const withInformers = "Uses controller-runtime's informers"

// clusterAPIDiffers are the tests that fail on the simulated server, by suite, with the reason.
var clusterAPIDiffers = map[string]struct{ test, reason string }{
	"controllers/clustercache":                             {"TestConnectWithDefaultTransform", "the first namespaces have no managedFields"},
	"controllers/crdmigrator":                              {"TestReconcile", "objects stored in a version that their CRD no longer has cannot be read"},
	"controlplane/kubeadm/reconcilers/kubeadmcontrolplane": {"Test_createRequest", "expressions of admission policies are only parsed"},
	"internal/topology/upgrade":                            {"TestAPIAndWebhookChanges", "not known: the test changes CRDs and their webhooks under the operator"},
}

// TestOperators_OnTheBridge runs the suites of Cluster API with the one line.
func TestOperators_OnTheBridge(t *testing.T) {
	t.Parallel()
	simulated, at := simulatedBinaries(t), clusterAPI.copied(t)
	all := clusterAPISuites(t, at)
	if len(all) < clusterAPISuitesAtLeast {
		t.Fatalf("%d suites start a server, at least %d did before", len(all), clusterAPISuitesAtLeast)
	}
	for _, pkg := range all {
		t.Run(strings.ReplaceAll(pkg, "/", "."), func(t *testing.T) {
			t.Parallel()
			binary, dir := clusterAPI.build(t, at, pkg), filepath.Join(at, pkg)
			t.Run("simulated", func(t *testing.T) {
				differs := clusterAPIDiffers[pkg]
				passes(t, dir, binary, simulated, differs.test)
				if differs.test != "" {
					t.Logf("%s is not run: %s", differs.test, differs.reason)
				}
			})
			t.Run("real", func(t *testing.T) { passes(t, dir, binary, realBinaries(t), "") })
		})
	}
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

// passes fails unless the suite without leaveOut passes, in one of three runs at most, as a spec
// of the others does.
func passes(t *testing.T, dir, binary, binaries, leaveOut string) {
	t.Helper()
	mine := mark + filepath.Join(t.TempDir(), "suite")
	for attempt := 1; ; attempt++ {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		cmd := exec.CommandContext(ctx, binary, "-test.timeout="+within.String())
		if leaveOut != "" {
			cmd.Args = append(cmd.Args, "-test.skip=^"+leaveOut+"$")
		}
		cmd.Dir, cmd.Env = dir, append(os.Environ(), envtest.AssetsVariable+"="+binaries, mine)
		if *peer {
			cmd.Env = append(cmd.Env, onPeer)
		}
		said, err := cmd.CombinedOutput()
		cancel()
		if ended := endLeftovers(mine); ended != nil {
			t.Errorf("end the servers that the suite left running: %v", ended)
		}
		if bytes.Contains(said, []byte(withInformers)) {
			t.Fatal("a manager of the suite has informers of its own: change the copy where it sets NewInformer")
		}
		if err == nil {
			return
		}
		said = ownLog.ReplaceAll(said, nil)
		if attempt == 3 {
			t.Fatalf("%v\n%s", err, said)
		}
		t.Logf("the suite runs again: %v\n%.5000s", err, said)
	}
}
