// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package envtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// stubGo is a go command that records each build in a file, waits for the gate to open, and creates empty binaries. It
// fails to download modules as often as the file failures says.
const stubGo = `#!/bin/sh
if [ "$1" = list ]; then
	echo attempt >>"$STUB/downloads"
	[ "$(wc -l <"$STUB/downloads")" -gt "$(cat "$STUB/failures" 2>/dev/null || echo 0)" ] && exit 0
	echo "502 Bad Gateway" >&2
	exit 1
fi
echo run >>"$STUB/runs"
[ -e "$STUB/broken" ] && echo "main.go:1: a broken thing" >&2 && exit 1
while [ ! -e "$STUB/gate" ]; do sleep 0.02; done
while [ "$1" != -o ]; do shift; done
case $2 in
*/) : >"$2/kube-apiserver"; : >"$2/kubectl" ;;
*) : >"$2" ;;
esac
`

// stubbed gives the test its own cache and a stub go command; it returns the stub's directory.
func stubbed(t *testing.T) string {
	t.Helper()
	stub, cache := t.TempDir(), t.TempDir()
	t.Setenv(AssetsVariable, "")
	t.Setenv("HOME", cache)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(cache, "cache"))
	t.Setenv("STUB", stub)
	t.Setenv("PATH", stub+string(os.PathListSeparator)+os.Getenv("PATH"))
	put(t, filepath.Join(stub, "go"), stubGo)
	t.Cleanup(func() { put(t, filepath.Join(stub, "gate"), "") })
	return stub
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Error(err)
	}
}

func runsOf(t *testing.T, stub string) int {
	t.Helper()
	runs, err := os.ReadFile(filepath.Join(stub, "runs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(runs), "run\n")
}

// A firstLine closes begun at the first write: the build has begun and holds its lock.
type firstLine struct {
	once  sync.Once
	begun chan struct{}
}

func (f *firstLine) Write(p []byte) (int, error) {
	f.once.Do(func() { close(f.begun) })
	return len(p), nil
}

func TestBinaries_OneBuildsForAll_E5(t *testing.T) {
	stub := stubbed(t)
	out := &firstLine{begun: make(chan struct{})}
	var group sync.WaitGroup
	var dir string
	var err error
	group.Go(func() { dir, err = Binaries(t.Context(), BinariesOptions{Output: out}) })
	<-out.begun

	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := Binaries(impatient, BinariesOptions{Output: io.Discard}); err == nil || !strings.Contains(err.Error(), "wait for the build of another process") {
		t.Errorf("asked while another builds: %q, %v, want to wait for it: two builds would tread on each other", got, err)
	}
	put(t, filepath.Join(stub, "gate"), "")
	group.Wait()
	if err != nil || !complete(dir) {
		t.Fatalf("Binaries = %q, %v, want a directory with all binaries", dir, err)
	}
	if again, err := Binaries(t.Context(), BinariesOptions{}); again != dir || err != nil {
		t.Errorf("asked again: %q, %v, want %q", again, err, dir)
	}
	if got, want := runsOf(t, stub), len(buildSteps("")); got != want {
		t.Errorf("the go command ran %d times, want %d: what is built is built once", got, want)
	}
}

func TestBinaries_AreNeverSeenInPart_E5(t *testing.T) {
	stub := stubbed(t)
	put(t, filepath.Join(stub, "broken"), "")
	dir, err := Binaries(t.Context(), BinariesOptions{Output: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "a broken thing") || !strings.Contains(err.Error(), "etcd "+etcdVersion) {
		t.Fatalf("Binaries = %q, %v, want an error with the compiler's words and what was built", dir, err)
	}
	cache, _ := os.UserCacheDir()
	left, err := filepath.Glob(filepath.Join(cache, "flyball", "controlplane", "*"))
	if len(left) != 1 || !strings.HasSuffix(left[0], ".lock") || err != nil {
		t.Errorf("after a build that broke there is %q, want the lock alone", left)
	}

	// A killed build leaves its work; a directory with a missing binary is not a build.
	built := strings.TrimSuffix(left[0], ".lock")
	for _, path := range []string{built + ".building/bin/etcd", built + "/etcd"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, path, "half")
	}
	if err := os.Remove(filepath.Join(stub, "broken")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(stub, "gate"), "")
	if dir, err = Binaries(t.Context(), BinariesOptions{Output: io.Discard}); err != nil || dir != built || !complete(dir) {
		t.Errorf("Binaries = %q, %v, want %q, complete", dir, err, built)
	}
	if content, err := os.ReadFile(filepath.Join(built, "etcd")); len(content) > 0 || err != nil {
		t.Errorf("etcd is %q, %v: half a binary of an older build was kept", content, err)
	}
}

func TestDownload_AProxyMayFailTwice(t *testing.T) {
	for failures, want := range map[string]string{"2": "", "9": "502 Bad Gateway"} {
		stub := stubbed(t)
		put(t, filepath.Join(stub, "failures"), failures)
		err := download(t.Context(), filepath.Join(stub, "go"), stub, time.Millisecond, io.Discard)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s failures: %v, want %q", failures, err, want)
		}
	}
}

func TestBinaries_EndsWithItsContext(t *testing.T) {
	stubbed(t) // the gate stays shut
	out := &firstLine{begun: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		<-out.begun
		cancel(errors.New("enough"))
	})
	if dir, err := Binaries(ctx, BinariesOptions{Output: out}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("Binaries = %q, %v, want the reason why the context ended", dir, err)
	}
}

func TestBinaries_GivenAreUsedAsTheyAre(t *testing.T) {
	stub := stubbed(t)
	assets := t.TempDir()
	t.Setenv(AssetsVariable, assets)
	put(t, filepath.Join(assets, "etcd"), "")
	_, err := Binaries(t.Context(), BinariesOptions{})
	if want := fmt.Sprintf("find control plane binaries in %q: no kube-apiserver; unset %s", assets, AssetsVariable); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("half of the binaries: error %v, want one with %q", err, want)
	}
	put(t, filepath.Join(assets, "kube-apiserver"), "")
	if dir, err := Binaries(t.Context(), BinariesOptions{}); dir != assets || err != nil {
		t.Errorf("Binaries = %q, %v, want the directory that %s names, %q", dir, err, AssetsVariable, assets)
	}
	other := t.TempDir()
	if _, err := Binaries(t.Context(), BinariesOptions{Assets: other}); err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("Options name an empty directory: error %v, want one that names it: Options win over the environment", err)
	}
	if runs := runsOf(t, stub); runs != 0 {
		t.Errorf("the go command ran %d times, want none", runs)
	}
}

func TestBinaries_WithoutGoSaysWhatToDo(t *testing.T) {
	stubbed(t)
	t.Setenv("PATH", t.TempDir())
	if _, err := Binaries(t.Context(), BinariesOptions{Output: io.Discard}); err == nil || !strings.Contains(err.Error(), "find the go command") || !strings.Contains(err.Error(), AssetsVariable) {
		t.Errorf("error %v, want one that names the go command and %s", err, AssetsVariable)
	}
}
