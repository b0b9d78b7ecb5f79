// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/doctor"
)

// The program does with a fault what it does without. With -doctor.budget=10m more plans are tried.
func TestDoctor(t *testing.T) {
	doctor.Test(t, doctor.Operator{
		Setup:   func(mgr *manager.Manager) error { return setup(mgr, []string{"deployments.apps"}) },
		Samples: []string{"testdata/deployment.yaml"}, MostPlans: 10,
	})
}
