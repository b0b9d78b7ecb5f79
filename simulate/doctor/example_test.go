// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/simulate/doctor"
)

// run makes a manager of cfg, without ports, and blocks until ctx ends.
func run(ctx context.Context, cfg *rest.Config) error {
	<-ctx.Done()
	return nil
}

func Example() {
	var t *testing.T // the parameter of TestDoctor
	doctor.Test(t, doctor.Operator{
		Main:    run, // func(ctx context.Context, cfg *rest.Config) error
		CRDs:    []string{"config/crd"},
		Samples: []string{"config/samples"},
	})
}
