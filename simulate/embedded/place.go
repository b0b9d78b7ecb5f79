// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/flyball-dev/flyball/internal/filelock"
)

// place returns the directory of a program's kubeconfig, which is the same at each start, and a
// function that removes it. dir is empty if it cannot be had, or if another process has it.
func place(name string) (dir string, release func()) {
	none := func() {}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", none
	}
	top := filepath.Join(cache, "flyball")
	dir = filepath.Join(top, "simulated", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", none
	}
	lock := filepath.Join(dir, "lock")
	unlock, err := filelock.Try(lock)
	if err != nil || unlock == nil {
		return "", none
	}
	return dir, func() {
		// A process that starts meanwhile may then have the lock of a file that is gone. At worst
		// another one replaces its kubeconfig.
		_ = os.Remove(lock)
		unlock()
		for d := dir; strings.HasPrefix(d, top); d = filepath.Dir(d) {
			if os.Remove(d) != nil {
				return // it has other programs' files
			}
		}
	}
}

// Commands returns what to type in another terminal: it applies a file of Options.Files, and
// shows the resource, such as websites, change.
func (c Cluster) Commands(file, resource string) string {
	return fmt.Sprintf("  export KUBECONFIG=%s\n  kubectl apply -f %s\n  kubectl get %s -w\n",
		word(c.Kubeconfig), word(filepath.Join(c.Dir, file)), resource)
}

// word quotes text for a shell.
func word(text string) string {
	if !strings.ContainsAny(text, " \t\n'\"`$&|;<>()*?[]#~!{}") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
