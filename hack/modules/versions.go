// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	bridge            = "bridge/controllerruntime"
	controllerRuntime = "sigs.k8s.io/controller-runtime"
)

// kubernetes are the Kubernetes modules of the root.
var kubernetes = []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go"}

// minors are those of controller-runtime that `minors` checks. The value says whether one may
// fail to compile with the bridge's Kubernetes libraries.
var minors = map[string]bool{"v0.23.": true, "v0.24.": false, "v0.25.": false}

// free lets the go command change go.mod, and download the Go that it requires.
var free = []string{"GOFLAGS=-mod=mod -buildvcs=false", "GOTOOLCHAIN=auto"}

// errApart says that controller-runtime does not compile with the Kubernetes libraries.
var errApart = errors.New("controller-runtime does not compile with these Kubernetes libraries, so the bridge is left out")

// slow are tests that start servers or processes, as in hack/test's step quick.
const slow = "^(TestControlPlane|TestIntegration|TestEnvtest|TestClient_OnARealControlPlane)$"

// next checks a copy of the tree against the newest beta, candidate or release of Kubernetes:
// it builds and vets the library, runs its quick tests, and builds the bridge. Replacements, as
// for go mod edit -replace, are for versions that the module proxy lacks. The Go that
// Kubernetes requires is downloaded.
func (r *repository) next(ctx context.Context, replacements []string) error {
	version, err := r.newest(ctx, kubernetes[2], func(v string) bool { return !strings.Contains(v, "-alpha.") })
	if err != nil {
		return err
	}
	return r.inCopy(ctx, "next", func(c *repository) error {
		for _, module := range []string{".", bridge} {
			if err := c.require(ctx, module, replacements, kubernetes, version); err != nil {
				return err
			}
		}
		packages, err := c.quick(ctx)
		if err != nil {
			return err
		}
		tests := slices.Concat([]string{"test", "-short", "-skip", slow}, packages)
		err = errors.Join(c.goes(ctx, ".", "build", "./..."), c.goes(ctx, ".", "vet", "./..."), c.goes(ctx, ".", tests...))
		// The bridge's tests need the simulated server, which follows Kubernetes' releases.
		return errors.Join(err, c.bridge(ctx, true, "build"))
	})
}

// minors checks the bridge, in copies of the tree, with the newest patch of each minor version
// of controller-runtime: it builds and vets the bridge, and runs its tests. With the argument
// suites it also runs controller-runtime's own suites on the bridge, which need the control plane.
func (r *repository) minors(ctx context.Context, args []string) error {
	if len(args) > 0 && !slices.Equal(args, []string{"suites"}) {
		return fmt.Errorf("minors: the argument is suites or none, not %q", args)
	}
	var errs []error
	for _, minor := range slices.Sorted(maps.Keys(minors)) {
		version, err := r.newest(ctx, controllerRuntime, func(v string) bool {
			return strings.HasPrefix(v, minor) && !strings.Contains(v, "-")
		})
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, r.inCopy(ctx, "minors", func(c *repository) error {
			edit := []string{"mod", "edit", "-require=" + controllerRuntime + "@" + version}
			if err := errors.Join(c.goes(ctx, bridge, edit...), c.goes(ctx, "hack/guests", edit...)); err != nil {
				return err
			}
			err := c.bridge(ctx, minors[minor], "build", "vet", "test")
			if err == nil && len(args) > 0 && !minors[minor] {
				err = c.goes(ctx, "hack/guests", "test", "-count=1", "-timeout=90m", "-run=^TestSuites_OnTheBridge$", "./controllerruntime")
			}
			return err
		}))
	}
	return errors.Join(errs...)
}

// newest returns the newest version of a module that wanted selects.
func (r *repository) newest(ctx context.Context, module string, wanted func(string) bool) (string, error) {
	listed, err := r.output(ctx, "hack/tools", "go", "list", "-m", "-versions", "-f", "{{range .Versions}}{{.}} {{end}}", module)
	if err != nil {
		return "", err
	}
	versions := slices.DeleteFunc(strings.Fields(listed), func(v string) bool { return !wanted(v) })
	if len(versions) == 0 {
		return "", fmt.Errorf("look for a version of %s: the module proxy has none that is wanted among %s", module, listed)
	}
	return versions[len(versions)-1], nil
}

// inCopy calls f with a copy of the tree, which may change, and removes it. The copy's directory
// is the same in each run, so that the go command finds what it has compiled.
func (r *repository) inCopy(ctx context.Context, name string, f func(*repository) error) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	of := fnv.New64a() // this checkout: another may run at the same time
	of.Write([]byte(r.root))
	dir := filepath.Join(cache, "flyball", "guests", fmt.Sprintf("%s-%x", name, of.Sum64()))
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := r.output(ctx, ".", "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.Trim(files, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(dir, name), filepath.Join(r.root, name)); err != nil {
			return err
		}
	}
	return f(&repository{root: dir, out: r.out, env: free})
}

// copyFile copies a file, unless it has been deleted.
func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644))
}

// goes runs a go command in a module of a copy.
func (r *repository) goes(ctx context.Context, module string, args ...string) error {
	fmt.Fprintf(r.out, "# %s: go %s\n", module, strings.Join(args[:min(len(args), 6)], " "))
	return r.command(ctx, module, nil, "go", args...)
}

// require makes a module of a copy require one version of some modules.
func (r *repository) require(ctx context.Context, module string, replacements, modules []string, version string) error {
	for _, replacement := range replacements {
		if err := r.goes(ctx, module, "mod", "edit", "-replace="+replacement); err != nil {
			return err
		}
	}
	get := []string{"get"}
	for _, name := range modules {
		get = append(get, name+"@"+version)
	}
	return r.goes(ctx, module, get...)
}

// quick lists the packages of the root whose tests start no servers.
func (r *repository) quick(ctx context.Context) (packages []string, err error) {
	listed, err := r.output(ctx, ".", "go", "list", "-f", "{{.Dir}}", "./...")
	for dir := range strings.Lines(listed) {
		name, err := filepath.Rel(r.root, strings.TrimSpace(dir))
		if err != nil {
			return nil, err
		}
		if name = filepath.ToSlash(name); !strings.HasPrefix(name, "hack") &&
			!slices.Contains([]string{"internal/house", "bridge/clientgo/factory", "integration", "envtest"}, name) {
			packages = append(packages, "./"+name)
		}
	}
	return packages, err
}

// bridge runs checks on the bridge of a copy. If controller-runtime itself does not compile with
// the Kubernetes libraries, it only says so where that is expected.
func (r *repository) bridge(ctx context.Context, mayBeApart bool, checks ...string) error {
	versions, err := r.output(ctx, bridge, "go", "list", "-m", controllerRuntime, kubernetes[2])
	if err != nil {
		return err
	}
	fmt.Fprintln(r.out, "#", strings.Join(strings.Fields(versions), " "))
	if err := r.goes(ctx, bridge, "build", controllerRuntime); err != nil {
		if mayBeApart && ctx.Err() == nil {
			fmt.Fprintln(r.out, "#", errApart)
			return nil
		}
		return errors.Join(errApart, err)
	}
	var errs []error
	for _, check := range checks {
		errs = append(errs, r.goes(ctx, bridge, check, "./..."))
	}
	return errors.Join(errs...)
}
