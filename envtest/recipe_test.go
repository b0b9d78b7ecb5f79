// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func recipeFile(t *testing.T, path string) string {
	t.Helper()
	content, err := recipe.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestRecipe_BuildsTheVersionsItNames(t *testing.T) {
	text := recipeFile(t, "recipe/gomod")
	for _, want := range []string{ // a tool counts as indirect
		"\tk8s.io/kubernetes " + kubernetesVersion + " // indirect\n",
		"\tgo.etcd.io/etcd/server/v3 " + etcdVersion + " // indirect\n",
		"\t" + apiserverPackage + "\n", "\t" + kubectlPackage + "\n", "\t" + etcdPackage + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the recipe lacks %q: version constants and go.mod must be changed together", want)
		}
	}
	staging := strings.Replace(kubernetesVersion, "v1.", "v0.", 1)
	_, replaces, _ := strings.Cut(text, "replace (")
	replaced := map[string]bool{}
	for line := range strings.Lines(replaces) {
		if module, target, found := strings.Cut(strings.TrimSpace(line), " => "); found {
			replaced[module] = true
			if target != module+" "+staging {
				t.Errorf("replace %s => %s, want %s", module, target, staging)
			}
		}
	}
	for _, module := range []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiserver", "k8s.io/client-go", "k8s.io/kubectl"} {
		if !replaced[module] {
			t.Errorf("%s is not replaced: k8s.io/kubernetes asks for v0.0.0 of it, which does not exist", module)
		}
	}
}

func TestRecipe_EveryModuleHasItsSum(t *testing.T) {
	sums := recipeFile(t, "recipe/gosum")
	_, requires, _ := strings.Cut(recipeFile(t, "recipe/gomod"), "require (")
	requires, _, _ = strings.Cut(requires, "replace (")
	required := 0
	for line := range strings.Lines(requires) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "v") || fields[1] == "v0.0.0" { // v0.0.0 is replaced
			continue
		}
		required++
		if !strings.Contains(sums, fields[0]+" "+fields[1]+"/go.mod h1:") {
			t.Errorf("no sum of %s %s: the build would stop", fields[0], fields[1])
		}
	}
	if required < 100 {
		t.Errorf("%d modules read from go.mod, want all of them", required)
	}
}

// Packages of the control plane that a program under test uses, too, are compiled once if they have one version.
func TestRecipe_HasTheVersionsOfTheRoot(t *testing.T) {
	versions := func(text string) map[string]string {
		found := map[string]string{}
		for line := range strings.Lines(text) {
			if fields := strings.Fields(line); len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
				found[fields[0]] = fields[1]
			}
			if module, target, ok := strings.Cut(strings.TrimSpace(line), " => "); ok {
				found[module] = strings.TrimPrefix(target, module+" ")
			}
		}
		return found
	}
	root, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := versions(string(root)), versions(recipeFile(t, "recipe/gomod"))
	shared := 0
	for module, version := range ours {
		if there, ok := theirs[module]; ok {
			shared++
			if there != version {
				t.Errorf("%s is %s in the recipe and %s in the root: all that imports it is compiled twice", module, there, version)
			}
		}
	}
	if shared < 20 {
		t.Errorf("the recipe and the root share %d modules, want most of the root's", shared)
	}
}

func TestRecipe_TravelsInTheModulesZip(t *testing.T) {
	if err := fs.WalkDir(os.DirFS("."), "recipe", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "go.mod" {
			t.Errorf("%s: its directory is a module of its own and is left out of this module's zip", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := WriteRecipe(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("written recipe: %s: %v, want a file", name, err)
		}
	}
}

func TestVersionFlags_StampBothPackages(t *testing.T) {
	flags := versionFlags()
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=" + kubernetesVersion,
		"-X k8s.io/component-base/version.gitMinor=37",
		"-X k8s.io/client-go/pkg/version.gitVersion=" + kubernetesVersion,
		"-X k8s.io/client-go/pkg/version.gitMajor=1 ",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("flags %q lack %q", flags, want)
		}
	}
}

func TestRecipeDigest_IsStable(t *testing.T) {
	first, err := recipeDigest()
	second, _ := recipeDigest()
	if err != nil || first != second || len(first) != 8 {
		t.Errorf("digests %q and %q, %v, want twice the same 8 digits", first, second, err)
	}
}
