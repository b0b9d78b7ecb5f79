// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/localserver"
)

// WriteKubeconfig writes a kubeconfig file for cfg, which is from Config, User or TokenUser, and returns its path. The file
// is in the environment's directory and is removed with it. An earlier file of the same name is replaced.
func (e *Environment) WriteKubeconfig(name string, cfg *rest.Config) (string, error) {
	if name == "" || name != filepath.Base(name) {
		return "", fmt.Errorf("write a kubeconfig: %q is no name of a file", name)
	}
	content, err := localserver.Kubeconfig("envtest", cfg)
	if err != nil {
		return "", fmt.Errorf("write the kubeconfig %q: %w", name, err)
	}
	path := e.path(name + ".kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write the kubeconfig %q: %w", name, err)
	}
	return path, nil
}
