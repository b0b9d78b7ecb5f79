// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package localserver_test

import (
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/internal/localserver"
)

func TestKubeconfig_SaysWhatTheConfigurationSays(t *testing.T) {
	tlsOf := func(ca, cert, key string) rest.TLSClientConfig {
		return rest.TLSClientConfig{CAData: []byte(ca), CertData: []byte(cert), KeyData: []byte(key)}
	}
	for name, want := range map[string]*rest.Config{
		"certificate": {Host: "https://127.0.0.1:1", TLSClientConfig: tlsOf("ca", "cert", "key")},
		"token":       {Host: "https://127.0.0.1:2", TLSClientConfig: tlsOf("ca", "", ""), BearerToken: "secret"},
	} {
		content, err := localserver.Kubeconfig("test", want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := clientcmd.RESTConfigFromKubeConfig(content)
		if err != nil {
			t.Fatal(err)
		}
		if got.Host != want.Host || got.BearerToken != want.BearerToken || string(got.CAData) != string(want.CAData) ||
			string(got.CertData) != string(want.CertData) || string(got.KeyData) != string(want.KeyData) {
			t.Errorf("%s: read back %v, want %v", name, got, want)
		}
	}
}
