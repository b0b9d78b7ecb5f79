// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig file that logs in as cfg does, into the environment's directory, and returns its
// path. It goes with the environment. The name is the file's name; an existing one is written anew.
func (e *Environment) WriteKubeconfig(name string, cfg *rest.Config) (string, error) {
	path := filepath.Join(e.dir, name)
	content, err := kubeconfigOf(cfg)
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, content, 0o600)
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
