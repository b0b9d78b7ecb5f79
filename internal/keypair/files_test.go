// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package keypair_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/flyball-dev/flyball/internal/keypair"
)

func pair(t *testing.T, at time.Time) keypair.Encoded {
	t.Helper()
	by, err := keypair.NewAuthority(at, "test")
	must(t, err)
	pair, err := by.Server(at)
	must(t, err)
	return pair
}

func TestFiles_WhatIsWholeAndValidIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, expired := pair(t, time.Now()), pair(t, time.Now()), pair(t, time.Now().AddDate(-2, 0, 0))
		dir := t.TempDir()
		held := &keypair.Holder{}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var log strings.Builder
		logger := funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{})
		running.Go(func() { keypair.Files{Dir: dir, Held: held}.Keep(ctx, logger) })
		for _, c := range []struct {
			name             string
			certificate, key []byte
			want             []byte // nil: none
			problem          string
		}{
			{"nothing is there", nil, nil, nil, "no such file"},
			{"a certificate without its key", first.Cert, nil, nil, "no such file"},
			{"both", first.Cert, first.Key, first.Cert, ""},
			{"another certificate, half written", second.Cert[:100], first.Key, first.Cert, "failed to find any PEM"},
			{"another certificate with the old key", second.Cert, first.Key, first.Cert, "does not match"},
			{"another pair", second.Cert, second.Key, second.Cert, ""},
			{"empty files", []byte{}, []byte{}, second.Cert, "failed to find any PEM"},
			{"an expired pair", expired.Cert, expired.Key, second.Cert, "has expired"},
			{"both again", first.Cert, first.Key, first.Cert, ""},
		} {
			for name, text := range map[string][]byte{"tls.crt": c.certificate, "tls.key": c.key} {
				if text != nil {
					must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
				}
			}
			time.Sleep(6 * time.Second)
			have, problem := held.Get()
			if served := have != nil; served != (c.want != nil) || served && !bytes.Equal(have.Certificate, c.want) {
				t.Errorf("%s: another pair is served than what was last whole and valid", c.name)
			}
			if (problem == nil) != (c.problem == "") || problem != nil && !strings.Contains(problem.Error(), c.problem) {
				t.Errorf("%s: the problem is %v, want %q", c.name, problem, c.problem)
			}
			synctest.Wait()
			if first, later := strings.Contains(log.String(), "there is none yet"), strings.Contains(log.String(), "still serving the previous one"); first && c.want != nil || later && c.want == nil {
				t.Errorf("%s: the log says what is not the case:\n%s", c.name, &log)
			}
			log.Reset()
		}
		stop()
		running.Wait()
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
