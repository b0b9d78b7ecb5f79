// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestBuildLog_CountsPackagesAndKeepsComplaints(t *testing.T) {
	for _, tc := range []struct {
		name, in             string
		progress, complaints string
	}{
		{"nothing yet", "", "starting", ""},
		{"packages", "fmt\nk8s.io/api/core/v1\n", "2 packages, now k8s.io/api/core/v1", ""},
		{"loading", "go: downloading k8s.io/api v0.37.2\n", "0 packages, now downloading k8s.io/api v0.37.2", ""},
		{"a fault", "fmt\n# example.com/a\na.go:1:2: undefined: b\n", "1 packages, now fmt", "# example.com/a\na.go:1:2: undefined: b"},
		{"no newline at the end", "fmt\ngo: no space left", "1 packages, now fmt", "go: no space left"},
	} {
		for _, size := range []int{1, 7, 1000} {
			log := &buildLog{}
			for chunk := range slices.Chunk([]byte(tc.in), size) {
				log.Write(chunk)
			}
			if got := log.progress(); got != tc.progress {
				t.Errorf("%s in pieces of %d: progress %q, want %q", tc.name, size, got, tc.progress)
			}
			if got := log.complaints(); got != tc.complaints {
				t.Errorf("%s in pieces of %d: complaints %q, want %q", tc.name, size, got, tc.complaints)
			}
		}
	}
}

func TestBuildEnv_NothingOfTheCallerChangesTheBuild(t *testing.T) {
	env := buildEnv([]string{"HOME=/h", "GOFLAGS=-mod=mod -tags=x", "GOWORK=/w/go.work", "CGO_ENABLED=1", "GOOS=plan9", "GOPROXY=off"})
	for _, want := range []string{"HOME=/h", "GOPROXY=off", "GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=1", "GOTOOLCHAIN=local", "GOOS=" + runtime.GOOS} {
		name, _, _ := strings.Cut(want, "=")
		if !slices.Contains(env, want) {
			t.Errorf("environment %q lacks %s", env, want)
		}
		if count := len(slices.DeleteFunc(slices.Clone(env), func(e string) bool { return !strings.HasPrefix(e, name+"=") })); count != 1 {
			t.Errorf("%s is set %d times, want once", name, count)
		}
	}
}
