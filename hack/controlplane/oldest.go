// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// oldestVersion is the oldest version that docs/support.md names.
const oldestVersion, oldestMinor = "v1.35.4", "35"

// The modules that it is built from. Their names make no module of this directory.
var (
	//go:embed oldest.gomod
	oldestGoMod []byte
	//go:embed oldest.gosum
	oldestGoSum []byte
)

// buildOldest builds the oldest kube-apiserver beside the newest control plane, once, and returns
// the directory that has it with etcd and kubectl.
func buildOldest(ctx context.Context, newest string, progress io.Writer) (string, error) {
	dir := strings.TrimRight(newest, `/\`) + "-oldest-" + oldestVersion
	if _, err := os.Stat(filepath.Join(dir, "kubectl")); err == nil {
		return dir, nil // it is copied last
	}
	fmt.Fprintf(progress, "build kube-apiserver %s into %s\n", oldestVersion, dir)
	work, err := os.MkdirTemp("", "oldest-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, text := range map[string][]byte{"go.mod": oldestGoMod, "go.sum": oldestGoSum} {
		if err := os.WriteFile(filepath.Join(work, name), text, 0o644); err != nil {
			return "", err
		}
	}
	const stamp = "k8s.io/component-base/version."
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -X "+stamp+"gitVersion="+oldestVersion+" -X "+stamp+"gitMajor=1 -X "+stamp+"gitMinor="+oldestMinor,
		"-o", filepath.Join(dir, "kube-apiserver"), "k8s.io/kubernetes/cmd/kube-apiserver")
	cmd.Dir, cmd.Stdout, cmd.Stderr = work, progress, progress
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build kube-apiserver %s: %w", oldestVersion, err)
	}
	for _, name := range []string{"etcd", "kubectl"} {
		program, err := os.ReadFile(filepath.Join(newest, name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), program, 0o755); err != nil {
			return "", err
		}
	}
	return dir, nil
}
