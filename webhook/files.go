// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
)

// filesPeriod is how often the files are read. It is short beside the minute that a
// kubelet may take to show a changed Secret.
const filesPeriod = 5 * time.Second

// files keeps what is served as two files say.
type files struct {
	dir  string
	held *holder
}

// look reads the files once.
func (f files) look(log logr.Logger) {
	found, err := f.read()
	if err != nil {
		if f.held.miss(err) {
			log.Error(err, "the certificate could not be read, what was served before stays", "dir", f.dir)
		}
		return
	}
	if f.held.offer(found, time.Now()) {
		log.Info("serving a certificate", "from", f.dir, "notAfter", found.leaf.NotAfter.Format(time.RFC3339))
	}
}

func (f files) read() (*pair, error) {
	certificate, err := os.ReadFile(filepath.Join(f.dir, "tls.crt"))
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(f.dir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("read key of the certificate: %w", err)
	}
	found, err := parsePair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("read certificate of %s: %w", f.dir, err)
	}
	return found, nil
}

// keep reads the files until ctx ends.
func (f files) keep(ctx context.Context, log logr.Logger) {
	every(ctx, filesPeriod, func() { f.look(log) })
}

// every calls do now, and again after each period, until ctx ends.
func every(ctx context.Context, period time.Duration, do func()) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
