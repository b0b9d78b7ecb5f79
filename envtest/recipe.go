// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Versions that the recipe builds. Its tests compare them with its go.mod file.
const (
	kubernetesVersion = "v1.37.2"
	kubernetesDate    = "2026-10-27T12:01:04Z"
	etcdVersion       = "v3.7.0"
)

// The recipe is a module that has no package of its own. Its files have names that do not make it a module while they lie
// here: a directory with a go.mod of its own would be left out of this module's zip, and users' tests would not get it.
//
//go:embed recipe
var recipe embed.FS

// recipeNames maps files of the recipe to their names in the build.
var recipeNames = map[string]string{"gomod": "go.mod", "gosum": "go.sum"}

// A buildStep is one run of the go command in the recipe's module.
type buildStep struct {
	what string // result, for messages
	args []string
}

// Packages that the recipe builds.
const (
	etcdPackage      = "go.etcd.io/etcd/server/v3"
	apiserverPackage = "k8s.io/kubernetes/cmd/kube-apiserver"
	kubectlPackage   = "k8s.io/kubernetes/cmd/kubectl"
)

// buildSteps returns the steps that put etcd, kube-apiserver and kubectl into the directory bin. They compile as `go test`
// and `go run` do, so that packages which a program under test needs too are compiled once for both.
func buildSteps(bin string) []buildStep {
	build := []string{"build", "-v", "-buildvcs=false", "-ldflags=-s -w " + versionFlags(), "-o"}
	return []buildStep{
		{what: "etcd " + etcdVersion, args: append(slices.Clip(build), filepath.Join(bin, "etcd"+exeSuffix), etcdPackage)},
		{what: "kube-apiserver and kubectl " + kubernetesVersion, args: append(slices.Clip(build), bin+string(filepath.Separator), apiserverPackage, kubectlPackage)},
	}
}

// versionFlags sets the version in the binaries; otherwise they report v0.0.0. A module zip does not contain its commit,
// which Kubernetes treats as a build from an archive.
func versionFlags() string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(kubernetesVersion, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, stamp := range [][2]string{
			{"gitVersion", kubernetesVersion},
			{"gitMajor", major},
			{"gitMinor", minor},
			{"gitCommit", ""},
			{"gitTreeState", "archive"},
			{"buildDate", kubernetesDate},
		} {
			flags = append(flags, "-X "+pkg+"."+stamp[0]+"="+stamp[1])
		}
	}
	return strings.Join(flags, " ")
}

// recipeDigest returns a short digest of the recipe's files and commands: when it changes, the binaries are rebuilt.
func recipeDigest() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(recipe, "recipe", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := recipe.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(content), content)
		return err
	})
	for _, step := range buildSteps("bin") {
		fmt.Fprintln(sum, step.args)
	}
	return hex.EncodeToString(sum.Sum(nil))[:8], err
}

// WriteRecipe writes the module of the recipe into dir, so that a maintainer can change versions and tidy it.
func WriteRecipe(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for from, to := range recipeNames {
		content, err := recipe.ReadFile("recipe/" + from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, to), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
