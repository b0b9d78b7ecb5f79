// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/flyball-dev/flyball/simulate/doctor"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// The program does with a fault what it does without. With -doctor.budget=10m more plans are tried.
func TestDoctor(t *testing.T) {
	doctor.Test(t, doctor.Operator{
		Setup: setup, Samples: []string{"testdata/original.yaml"}, Cluster: kit.Config{Namespaces: []string{"team-a", "team-b", "team-c"}}, MostPlans: 10,
	})
}
