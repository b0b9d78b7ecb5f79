// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kubectl runs kubectl as the administrator with args and returns its standard output. The error contains its standard
// error. It blocks until kubectl or ctx ends. Its cache is in the environment's directory.
func (e *Environment) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, e.KubectlPath(), args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig(), "KUBECACHEDIR="+filepath.Join(e.dir, "kubectl"))
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.Bytes(), nil
}

// KubectlPath returns the path of the kubectl beside the servers, for interactive use.
func (e *Environment) KubectlPath() string { return filepath.Join(e.assets, "kubectl"+exeSuffix) }
