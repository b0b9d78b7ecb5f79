// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command oldest builds the oldest kube-apiserver that docs/support.md names beside the newest
// control plane, once, and prints the directory that has it with etcd and kubectl.
//
//	KUBEBUILDER_ASSETS=$(go run ./hack/oldest) go test ./integration
//
// The server's modules are in gomod and gosum, names that make no module of this directory.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/internal/commandline"
)

const version, minor = "v1.35.4", "35"

var (
	//go:embed gomod
	goMod []byte
	//go:embed gosum
	goSum []byte
)

func main() {
	if err := commandline.Parse(flag.CommandLine, os.Args[1:]); err != nil {
		os.Exit(commandline.ExitCode(err))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := build(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "oldest:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}

func build(ctx context.Context, progress io.Writer) (string, error) {
	newest, err := envtest.Binaries(ctx, envtest.BinariesOptions{Output: progress})
	if err != nil {
		return "", err
	}
	dir := strings.TrimRight(newest, `/\`) + "-oldest-" + version
	if _, err := os.Stat(filepath.Join(dir, "kubectl")); err == nil {
		return dir, nil // it is copied last
	}
	fmt.Fprintf(progress, "build kube-apiserver %s into %s\n", version, dir)
	work, err := os.MkdirTemp("", "oldest-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, text := range map[string][]byte{"go.mod": goMod, "go.sum": goSum} {
		if err := os.WriteFile(filepath.Join(work, name), text, 0o644); err != nil {
			return "", err
		}
	}
	const stamp = "k8s.io/component-base/version."
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -X "+stamp+"gitVersion="+version+" -X "+stamp+"gitMajor=1 -X "+stamp+"gitMinor="+minor,
		"-o", filepath.Join(dir, "kube-apiserver"), "k8s.io/kubernetes/cmd/kube-apiserver")
	cmd.Dir, cmd.Stdout, cmd.Stderr = work, progress, progress
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build kube-apiserver %s: %w", version, err)
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
