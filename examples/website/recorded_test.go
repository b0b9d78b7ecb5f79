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

func TestReplay_RecordedRuns(t *testing.T) {
	dir := t.TempDir()
	cfg := simulated(t)
	cfg.Seeds = 60
	//cfg.Faults = kit.Plan{}
	var files []string
	var mu sync.Mutex
	cfg.Process = func(_ string, opts *manager.Options) {
		mu.Lock()
		defer mu.Unlock()
		of := filepath.Join(dir, strconv.Itoa(len(files)))
		opts.Record = manager.Record{Dir: of, Every: 24 * time.Hour}
		files = append(files, of)
	}
	t.Run("record", func(t *testing.T) { kit.Test(t, cfg, serve) })
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { kit.Replay(t, file, simulated(t), setup) })
	}
}
