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

// What the recipe builds. The recipe's own tests hold these against its go.mod files.
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

// recipeNames says what a file of the recipe is called where it is built.
var recipeNames = map[string]string{"gomod": "go.mod", "gosum": "go.sum", "maingo": "main.go"}

// A buildStep is one run of the go command in one module of the recipe.
type buildStep struct {
	what   string   // for people: what comes out
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

// versionFlags stamps the version into the binaries; unstamped ones call themselves v0.0.0. A module's zip does not
// say which commit it was made of, which Kubernetes itself calls a build from an archive.
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

// recipeDigest is a short name for the recipe's content and commands: when they change, the binaries are built anew.
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

// WriteRecipe writes the modules that the binaries are built from into dir, one directory each, so that a maintainer
// can change a version and tidy them.
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
