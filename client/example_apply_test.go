// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
)

func ensure(ctx context.Context, c *client.Client, site *webv1.Website) error {
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	page.Data = map[string]string{"index.html": site.Spec.Content} // what mutate did
	return c.Apply(ctx, page, client.FieldOwner("website"), client.Force{})
}

// Apply gives an object the fields that you name, and creates it if it does not exist.
func ExampleClient_Apply() {
	var c *client.Client // a manager's Client, or that of client.New
	site := &webv1.Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"},
		Spec:       webv1.WebsiteSpec{Content: "<h1>It balances.</h1>"},
	}
	if err := ensure(context.Background(), c, site); err != nil {
		fmt.Println(err)
	}
}
