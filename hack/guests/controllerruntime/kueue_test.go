// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"path/filepath"
	"testing"
)

// kueue is Kueue. Its CRDs are those before kustomize adds conversion webhooks.
var kueue = foreign{
	module: "sigs.k8s.io/kueue@v0.17.0",
	swaps: map[string][]swap{"test/integration/framework/framework.go": {
		{`ctrl.NewManager(cfg, mgrOptions)`, `ctrl.NewManager(cfg, options(mgrOptions))`, 1},
		{`"config", "components", "crd", "_output")`, `"config", "components", "crd", "bases")`, 1},
	}},
	files: map[string]string{"test/integration/framework/flyball.go": theOptions("framework")},
	// It names types that Kubernetes 0.36 has removed.
	without: map[string]string{
		"github.com/kubeflow/trainer/v2@v2.2.0": "pkg/apis/trainer/v1alpha1/zz_generated.openapi.go",
	},
	packages: []string{"./" + kueueSuite},
}

const (
	kueueSuite = "test/integration/singlecluster/controller/core"
	kueueSpecs = 51
)

// TestKueue_OnTheBridge runs the suite of Kueue's core controllers with the one line.
func TestKueue_OnTheBridge(t *testing.T) {
	t.Parallel()
	simulated, at := simulatedBinaries(t), kueue.copied(t)
	binary := kueue.build(t, at, kueueSuite)
	s := suite{name: "kueue", dir: filepath.Join(at, kueueSuite), binary: binary}
	t.Run("real", func(t *testing.T) { s.all(t, realBinaries(t), kueueSpecs) })
	t.Run("simulated", func(t *testing.T) { s.all(t, simulated, kueueSpecs) })
}
