// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"testing"

	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// The scenarios of the examples pass. go test only compiles the examples themselves, since kit needs a *testing.T.
func TestExamples_Hold(t *testing.T) {
	for name, c := range map[string]struct {
		cfg      kit.Config
		scenario func(*kit.World)
	}{
		"one process":  {websites, keepsThePage},
		"two replicas": {websites, twoReplicas},
		"election":     {replicated, handOver},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.CRDs, c.cfg.Kinds = nil, []simulate.Kind{{GroupVersionKind: webv1.GroupVersion.WithKind("Website"), Namespaced: true}}
			if h := kit.Run(t, c.cfg, 1, c.scenario); len(h.Violations) > 0 {
				t.Errorf("the scenario of an example fails: %v", h.Violations)
			}
		})
	}
}
