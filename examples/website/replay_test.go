// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// A recording that "kubectl flyball record" has made in production runs again in virtual time:
//
//	go test -run TestReplay -kit.bundle=FILE
func TestReplay(t *testing.T) { kit.Replay(t, "", simulated(t), setup) }

// So does the life of each program of some simulated runs, in parts of three minutes.
func TestReplay_OfSimulatedRuns(t *testing.T) {
	var mu sync.Mutex
	dir, lives := t.TempDir(), 0
	cfg := simulated(t)
	cfg.Seeds, cfg.Faults = 4, kit.Plan{}
	cfg.Process = func(_ string, opts *manager.Options) {
		mu.Lock()
		defer mu.Unlock()
		lives++
		opts.Record = manager.Record{Dir: filepath.Join(dir, strconv.Itoa(lives)), Every: 3 * time.Minute}
	}
	if !t.Run("record", func(t *testing.T) { kit.Test(t, cfg, serve) }) {
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.tar.gz"))
	if err != nil || len(files) < 2*cfg.Seeds {
		t.Fatalf("the runs have left the recordings %q, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { kit.Replay(t, file, simulated(t), setup) })
	}
}
