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

// AssetsVariable is the environment variable that names a directory with ready binaries, as the ecosystem knows it.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// BinariesOptions says where the binaries are and where the building of them is told. The zero value is fit for use.
type BinariesOptions struct {
	// Assets is a directory with etcd, kube-apiserver and, for Kubectl, kubectl.
	// Zero: the directory that KUBEBUILDER_ASSETS names, else binaries built into the user's cache.
	Assets string

	// Output is told, a line every few seconds, what is being built and for how long. It is not written to when nothing
	// is built. Zero: os.Stderr.
	Output io.Writer
}

// Binaries returns a directory with etcd, kube-apiserver and kubectl, and builds them first where there are none.
//
// A directory given by Options or KUBEBUILDER_ASSETS is used as it is; one that lacks etcd or kube-apiserver is an
// error. Otherwise the binaries live under os.UserCacheDir in flyball/controlplane, one directory per version,
// platform and recipe. Building takes the go command of PATH, the modules it cannot find in the module cache, and
// several minutes; it blocks until done or ctx ends. Processes that ask at the same time wait for the one that builds.
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

// cacheName names the directory of one build in the cache.
func cacheName(goos, goarch, digest string) string {
	return kubernetesVersion + "-" + goos + "-" + goarch + "-" + digest
}

// complete says whether dir has all that a build gives. Builds appear by a rename, so never in part; what is missing
// was taken away later.
func complete(dir string) bool {
	return len(missingBinaries(dir, "etcd", "kube-apiserver", "kubectl")) == 0
}

// missingBinaries returns those of names that are no files in dir.
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
