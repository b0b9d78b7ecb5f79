// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"encoding/json"
	"fmt"

	appsac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/flyball-dev/flyball/client"
)

func withoutDelay() *appsac.DeploymentApplyConfiguration {
	return appsac.Deployment("web", "default").
		WithSpec(appsac.DeploymentSpec().WithMinReadySeconds(0)) // a plain struct would not claim it
}

func claimNoDelay(ctx context.Context, c *client.Client) error {
	return c.Apply(ctx, withoutDelay(), client.FieldOwner("website"), client.Force{})
}

// An apply configuration is sent as it is, with its zeros.
func ExampleClient_Apply_configuration() {
	_ = claimNoDelay // c is a manager's Client, or that of client.New
	text, err := json.Marshal(withoutDelay())
	fmt.Println(string(text), err)
	// Output: {"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"default"},"spec":{"minReadySeconds":0}} <nil>
}
