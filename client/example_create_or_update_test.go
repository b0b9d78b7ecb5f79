// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
)

func ensureKey(ctx context.Context, c *client.Client, secret *corev1.Secret) error {
	_, err := c.CreateOrUpdate(ctx, secret, func() error {
		if len(secret.Data["key"]) == 0 {
			secret.Data = map[string][]byte{"key": newKey()}
		}
		return nil
	})
	return err
}

func newKey() []byte { return []byte(rand.Text()) }

// CreateOrUpdate is for a change that depends on the existing object.
func ExampleClient_CreateOrUpdate() {
	var c *client.Client // a manager's Client, or that of client.New
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	if err := ensureKey(context.Background(), c, secret); err != nil {
		fmt.Println(err)
	}
}
