// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package keypair

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

func TestStrange_WhoOwnsIt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tls.key")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	owner := os.Geteuid()
	if owner == 0 {
		owner = 12345
		if err := os.Chown(name, owner, -1); err != nil {
			t.Skip("this root may not give files away:", err)
		}
	}
	look := func() os.FileInfo {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if err := checkOwner(name, look(), owner); err != nil {
		t.Errorf("one's own file: %v", err)
	}
	if err := checkOwner(name, look(), owner+1); err == nil || !strings.Contains(err.Error(), "belongs to user") {
		t.Errorf("another user's file: %v, want it refused", err)
	}
	if err := os.Chmod(name, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := checkOwner(name, look(), owner); err == nil || !strings.Contains(err.Error(), "every user") {
		t.Errorf("a file that every user can write: %v, want it refused", err)
	}
}

func TestFiles_OwnOnlyServesNothingOfOtherUsers(t *testing.T) {
	dir := t.TempDir()
	by, err := NewAuthority(time.Now(), "test")
	if err != nil {
		t.Fatal(err)
	}
	made, err := by.Server(time.Now(), "hooks.prod.svc")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"tls.crt": made.Cert, "tls.key": made.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), 0o666); err != nil { // regardless of the umask
			t.Fatal(err)
		}
	}
	held := &Holder{}
	Files{Dir: dir, Held: held, OwnOnly: true}.Look(logr.Discard())
	if pair, err := held.Get(); pair != nil || err == nil || !strings.Contains(err.Error(), "every user") {
		t.Errorf("a pair that every user can write: %v, want it refused", err)
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	Files{Dir: dir, Held: held, OwnOnly: true}.Look(logr.Discard())
	if pair, err := held.Get(); pair == nil || err != nil {
		t.Errorf("one's own pair is not served: %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := os.Chown(dir, 12345, -1); err != nil {
		t.Skip("this root may not give files away:", err)
	}
	held = &Holder{}
	Files{Dir: dir, Held: held, OwnOnly: true}.Look(logr.Discard())
	if pair, err := held.Get(); pair != nil || err == nil || !strings.Contains(err.Error(), "belongs to user") {
		t.Errorf("a directory of another user: %v, want it refused", err)
	}
}
