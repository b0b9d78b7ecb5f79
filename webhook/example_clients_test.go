// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"
)

func withClients(authority []byte, scheme *runtime.Scheme) (*manager.Manager, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("no certificate of an authority in the file")
	}
	return manager.New(manager.Options{
		Scheme:   scheme,
		Webhooks: webhook.Options{ClientCAs: pool, ClientNames: []string{"kube-apiserver-webhooks"}},
	})
}

// Only a client with a certificate of the authority gets an answer.
func ExampleOptions_clients() {
	scheme := runtime.NewScheme()
	if err := webv1.AddToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	authority, err := os.ReadFile("/etc/website/webhook-clients.pem")
	if err != nil {
		fmt.Println(err)
		return
	}
	mgr, err := withClients(authority, scheme)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Register webhooks with mgr.Webhooks() here.
	if err := mgr.Run(manager.SignalContext()); err != nil {
		fmt.Println(err)
	}
}
