// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig file that logs in as cfg does, one of Config, User or TokenUser, and returns its
// path. It lies in the environment's directory and goes with it. A file written before under the same name is replaced.
func (e *Environment) WriteKubeconfig(name string, cfg *rest.Config) (string, error) {
	if name == "" || name != filepath.Base(name) {
		return "", fmt.Errorf("write a kubeconfig: %q is no name of a file", name)
	}
	content, err := kubeconfigOf(cfg)
	if err != nil {
		return "", fmt.Errorf("write the kubeconfig %q: %w", name, err)
	}
	path := e.path(name + ".kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write the kubeconfig %q: %w", name, err)
	}
	return path, nil
}

// kubeconfigOf says in kubectl's format what cfg says.
func kubeconfigOf(cfg *rest.Config) ([]byte, error) {
	const name = "envtest"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server:                   cfg.Host,
			CertificateAuthorityData: cfg.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: cfg.CertData,
			ClientKeyData:         cfg.KeyData,
			Token:                 cfg.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: "default"}},
		CurrentContext: name,
	})
}
