// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// AssetsVariable is the environment variable with the directory of the binaries, as in controller-runtime's envtest.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// BinariesOptions sets where the binaries are and where build progress is reported. The zero value is fit for use.
type BinariesOptions struct {
	// Assets is a directory with etcd, kube-apiserver and, for Kubectl, kubectl. Zero: the directory in KUBEBUILDER_ASSETS,
	// else binaries built into the user's cache.
	Assets string

	// Output receives a progress line every few seconds during a build, and nothing if nothing is built. Zero: os.Stderr.
	Output io.Writer
}

// Binaries returns a directory with etcd, kube-apiserver and kubectl. It builds them first if there are none.
//
// A directory given by Options or KUBEBUILDER_ASSETS is used as it is; it is an error if it lacks etcd or kube-apiserver.
// Otherwise the binaries are in flyball/controlplane under os.UserCacheDir, in one directory per version, platform and
// recipe. A build needs the go command in PATH, modules that are not in the module cache, and several minutes. Binaries
// blocks until it is done or ctx ends. Concurrent processes wait for the one that builds.
func Binaries(ctx context.Context, opts BinariesOptions) (string, error) {
	if dir := cmp.Or(opts.Assets, os.Getenv(AssetsVariable)); dir != "" {
		if missing := missingBinaries(dir, "etcd", "kube-apiserver"); len(missing) > 0 {
			return "", fmt.Errorf("find control plane binaries in %q: no %s; unset %s to have them built", dir, strings.Join(missing, ", no "), AssetsVariable)
		}
		return filepath.Abs(dir)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache for control plane binaries: %w; set %s to a directory that has them", err, AssetsVariable)
	}
	digest, err := recipeDigest()
	if err != nil {
		return "", fmt.Errorf("read the recipe of the control plane: %w", err)
	}
	root := filepath.Join(cache, "flyball", "controlplane")
	dir := filepath.Join(root, cacheName(runtime.GOOS, runtime.GOARCH, digest))
	if complete(dir) {
		return dir, nil
	}
	if err := buildOnce(ctx, dir, cmp.Or[io.Writer](opts.Output, os.Stderr)); err != nil {
		return "", fmt.Errorf("build the control plane into %q: %w", dir, err)
	}
	return dir, nil
}

// cacheName returns the name of a build's directory in the cache.
func cacheName(goos, goarch, digest string) string {
	return kubernetesVersion + "-" + goos + "-" + goarch + "-" + digest
}

// complete reports whether dir has all binaries of a build. Builds appear by a rename, so never partially; a missing binary
// was removed later.
func complete(dir string) bool {
	return len(missingBinaries(dir, "etcd", "kube-apiserver", "kubectl")) == 0
}

// missingBinaries returns the names that are not files in dir.
func missingBinaries(dir string, names ...string) []string {
	var missing []string
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name+exeSuffix))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
			missing = append(missing, name)
		}
	}
	return missing
}
