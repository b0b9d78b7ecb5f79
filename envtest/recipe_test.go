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
	kubernetes := recipeFile(t, "recipe/kubernetes/gomod")
	etcd := recipeFile(t, "recipe/etcd/gomod")
	for what, found := range map[string]bool{
		"kubernetes " + kubernetesVersion: strings.Contains(kubernetes, "\tk8s.io/kubernetes "+kubernetesVersion+" // indirect\n"), // a tool counts as indirect
		"etcd " + etcdVersion:             strings.Contains(etcd, "require go.etcd.io/etcd/server/v3 "+etcdVersion+"\n"),
		"tool kube-apiserver":             strings.Contains(kubernetes, "\tk8s.io/kubernetes/cmd/kube-apiserver\n"),
		"tool kubectl":                    strings.Contains(kubernetes, "\tk8s.io/kubernetes/cmd/kubectl\n"),
	} {
		if !found {
			t.Errorf("the recipe lacks %s: version constants and go.mod files must be changed together", what)
		}
	}
	staging := strings.Replace(kubernetesVersion, "v1.", "v0.", 1)
	_, replaces, _ := strings.Cut(kubernetes, "replace (")
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
	for _, module := range []string{"kubernetes", "etcd"} {
		sums := recipeFile(t, "recipe/"+module+"/gosum")
		_, requires, _ := strings.Cut(recipeFile(t, "recipe/"+module+"/gomod"), "require")
		requires, _, _ = strings.Cut(requires, "replace (")
		required := 0
		for line := range strings.Lines(requires) {
			fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
			if at := len(fields) - 2; at >= 0 && fields[at] == "//" { // path version // indirect
				fields = fields[:at]
			}
			if len(fields) < 2 || !strings.HasPrefix(fields[len(fields)-1], "v") {
				continue
			}
			path, version := fields[len(fields)-2], fields[len(fields)-1]
			if version == "v0.0.0" {
				continue // replaced
			}
			required++
			if !strings.Contains(sums, path+" "+version+"/go.mod h1:") {
				t.Errorf("%s: no sum of %s %s: the build would stop", module, path, version)
			}
		}
		if required < 30 {
			t.Errorf("%s: %d modules read from its go.mod, want all of them", module, required)
		}
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
	for _, name := range []string{"kubernetes/go.mod", "kubernetes/go.sum", "etcd/go.mod", "etcd/go.sum", "etcd/main.go"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("written recipe: %s: %v, want a file", name, err)
		}
	}
}

func TestVersionFlags_StampBothPackages(t *testing.T) {
	flags := versionFlags()
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.37.1",
		"-X k8s.io/component-base/version.gitMinor=37",
		"-X k8s.io/client-go/pkg/version.gitVersion=v1.37.1",
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
