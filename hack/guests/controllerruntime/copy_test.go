// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	flyball   = "github.com/flyball-dev/flyball"
	theBridge = flyball + "/bridge/controllerruntime"
)

// foreign is an operator whose suites are built with the bridge, from a changed copy: with
// the line in place, its module requires the bridge.
type foreign struct {
	module   string            // path and version
	swaps    map[string][]swap // the changes to its files
	files    map[string]string // files that are added
	mod      []string          // further arguments of go mod edit
	tags     string            // build tags of its suites
	packages []string          // those for which go.mod and go.sum are completed
	kept     string            // distinguishes two copies of one module
	without  map[string]string // a file to remove, by the module that it requires
}

// bridgeImported adds the import of the bridge after another one.
func bridgeImported(other string) swap {
	return swap{"\t" + other + "\n", "\t" + other + "\n\tbridge \"" + theBridge + "\"\n", 1}
}

// theOptions returns a file of a package with the function options: it puts the line where it is
// called, except on the peer.
func theOptions(pkg string) string {
	return "package " + pkg + `

import (
	"os"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	bridge "` + theBridge + `"
)

func options(opts manager.Options) manager.Options {
	if ` + set(onPeer) + ` {
		return opts
	}
	return bridge.Options(opts)
}
`
}

// unpacked copies the module as it is, and returns the copy's directory.
func (f foreign) unpacked(t *testing.T) string {
	t.Helper()
	name, version, _ := strings.Cut(f.module, "@")
	archive, err := zip.OpenReader(f.downloaded(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := archive.Close(); err != nil {
			t.Error(err)
		}
	}()
	inside, err := fs.Sub(archive, f.module)
	if err != nil {
		t.Fatal(err)
	}
	return copyFS(t, f.kept+strings.ReplaceAll(name, "/", "-")+"-"+version, inside)
}

// copied copies the module, changes it, and returns the copy's directory.
func (f foreign) copied(t *testing.T) string {
	t.Helper()
	to, mod := f.unpacked(t), slices.Clone(f.mod)
	for module, file := range f.without {
		at := foreign{module: module}.unpacked(t)
		if err := os.Remove(filepath.Join(at, file)); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(module, "@")
		mod = append(mod, "-replace="+name+"="+at)
	}
	swapIn(t, to, f.swaps)
	for name, text := range f.files {
		file := filepath.Join(to, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	// The copy is built with the Go that builds flyball, also where its go.mod asks for a newer
	// patch release.
	outputIn(t, to, "go", append([]string{"mod", "edit", "-go=1.26.0", "-require=" + theBridge + "@v0.0.0",
		"-replace=" + theBridge + "=" + filepath.Join(root, "bridge", "controllerruntime"),
		"-replace=" + flyball + "=" + root, "-replace=" + flyball + "/simulate=" + filepath.Join(root, "simulate")}, mod...)...)
	list := []string{"list", "-mod=mod", "-deps", "-test", "-tags=" + f.tags}
	outputIn(t, to, "go", append(list, f.packages...)...) // completes go.mod and go.sum
	return to
}

// downloaded returns the module's archive. The go command has it, and ends with an error, also
// where the module asks for a newer Go.
func (f foreign) downloaded(t *testing.T) string {
	t.Helper()
	said, failed := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", f.module).Output()
	var module struct{ Zip, Error string }
	if err := json.Unmarshal(said, &module); err != nil {
		t.Fatalf("%v (%v)", err, failed)
	}
	if module.Zip == "" {
		t.Fatalf("download %s: %s", f.module, module.Error)
	}
	return module.Zip
}

// build builds the suite of a package of the copy in dir.
func (f foreign) build(t *testing.T, dir, pkg string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "suite")
	outputIn(t, dir, "go", "test", "-mod=mod", "-vet=off", "-tags="+f.tags, "-c", "-ldflags=-s -w", "-o", binary, "./"+pkg)
	return binary
}

// copyFS copies files into a directory that is the same in each run, so that the go command
// finds what it has compiled.
func copyFS(t *testing.T, name string, from fs.FS) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	of := fnv.New64a() // this checkout: another may run at the same time
	of.Write([]byte(here))
	to := filepath.Join(cache, "flyball", "guests", fmt.Sprintf("%s-%x", name, of.Sum64()))
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, from); err != nil {
		t.Fatal(err)
	}
	return to
}

// swapIn changes files in dir.
func swapIn(t *testing.T, dir string, swaps map[string][]swap) {
	t.Helper()
	for name, all := range swaps {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(file); err != nil { // it is read-only
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(changed(t, name, string(text), all)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
