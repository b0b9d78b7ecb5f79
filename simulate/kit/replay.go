// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/klauspost/compress/zstd"

	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/kit/internal/replay"
)

var bundleFile = flag.String("kit.bundle", "", "the recording that package kit's Replay replays, if the test names none")

// Replay runs what setup adds to a manager against a recording of it, in virtual time: the informers
// have the recorded objects and events, and each reconcile runs when the recorded one did, gets the
// recorded answers, and must send the recorded requests. The first that differs fails the test, with
// both. bundle is a file that "kubectl flyball record" or manager.Options.Record has made; empty: that
// of the flag -kit.bundle. Without either, and if no reconcile began in it, the test is skipped. Of cfg
// it uses CRDs, Scheme and Manager. docs/recordings.md says what a reconciler must do to be replayed: take the time from
// reconcile.Now and chance from reconcile.Rand.
func Replay(t *testing.T, bundle string, cfg Config, setup func(*manager.Manager) error) {
	t.Helper()
	file := cmp.Or(bundle, *bundleFile)
	switch {
	case setup == nil:
		t.Fatal("misuse: Replay: setup is nil; give the function that adds the controllers to a manager")
	case file == "":
		t.Skip("there is no recording; name one with -kit.bundle=FILE, as \"kubectl flyball record\" makes it")
	}
	cfg.Seeds = 1
	if _, _, err := cfg.complete(false); err != nil {
		t.Fatalf("misuse: %v", err)
	}
	b, err := openBundle(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.End == nil {
		t.Logf("%s was cut off: its %d entries are replayed", file, len(b.Entries))
	}
	opts := cfg.Manager
	opts.Scheme = cfg.Scheme
	synctest.Test(t, func(t *testing.T) {
		prog := replay.Program{Manager: opts, Definitions: copies(cfg.definitions), Setup: setup, Logger: replayLog(t)}
		r, err := replay.Run(t.Context(), b, prog)
		if err != nil {
			t.Errorf("replay %s: %v", file, err)
		}
		if err == nil && r.Reconciles == 0 {
			t.Skipf("%s has no reconcile that began in it; nothing was compared", file)
		}
		t.Logf("replayed %v of %q: %d events, %d reconciles, %d requests", r.Took, b.Program, r.Events, r.Reconciles, r.Requests)
	})
}

// openBundle reads a recording, also one that is compressed by zstd.
func openBundle(path string) (*recording.Bundle, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var in io.Reader = file
	magic := make([]byte, 4)
	if _, err := file.ReadAt(magic, 0); err == nil && bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		unpacked, err := zstd.NewReader(file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		defer unpacked.Close()
		in = unpacked
	}
	b, err := recording.Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// replayLog writes to the test's log.
func replayLog(t *testing.T) logr.Logger {
	return funcr.New(func(prefix, args string) { t.Log(prefix, args) }, funcr.Options{})
}
