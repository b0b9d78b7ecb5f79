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
	"strings"
)

// Versions that the recipe builds. Its tests compare them with its go.mod files.
const (
	kubernetesVersion = "v1.37.1"
	kubernetesDate    = "2026-09-23T17:06:22Z"
	etcdVersion       = "v3.6.16"
)

// The recipe is two small modules. Their files have names that do not make them modules while they lie here: a
// directory with a go.mod of its own would be left out of this module's zip, and users' tests would not get it.
//
//go:embed recipe
var recipe embed.FS

// recipeNames maps files of the recipe to their names in the build.
var recipeNames = map[string]string{"gomod": "go.mod", "gosum": "go.sum", "maingo": "main.go"}

// A buildStep is one run of the go command in one module of the recipe.
type buildStep struct {
	what   string   // result, for messages
	module string   // directory of the module in the recipe
	args   []string // of the go command
}

// buildSteps returns the steps that put etcd, kube-apiserver and kubectl into the directory bin.
func buildSteps(bin string) []buildStep {
	return []buildStep{
		{
			what:   "etcd " + etcdVersion,
			module: "etcd",
			args:   []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(bin, "etcd"+exeSuffix), "."},
		},
		{
			what:   "kube-apiserver and kubectl " + kubernetesVersion,
			module: "kubernetes",
			args:   []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags=-s -w " + versionFlags(), "-o", bin + string(filepath.Separator), "tool"},
		},
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

// WriteRecipe writes the modules of the recipe into dir, one directory each, so that a maintainer can change versions and
// tidy them.
func WriteRecipe(dir string) error {
	return fs.WalkDir(recipe, "recipe", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := recipe.ReadFile(path)
		if err != nil {
			return err
		}
		module := filepath.Base(filepath.Dir(path))
		if err := os.MkdirAll(filepath.Join(dir, module), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, module, recipeNames[entry.Name()]), content, 0o644)
	})
}
