// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package keypair

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
)

// period is how often files are read. It is short beside the minute that a kubelet
// may take to show a changed Secret.
const period = 5 * time.Second

// Files keeps what Held serves as tls.crt and tls.key in Dir say.
type Files struct {
	Dir  string
	Held *Holder
}

// Look reads the files once.
func (f Files) Look(log logr.Logger) {
	found, err := f.read()
	if err != nil {
		if f.Held.Miss(err) {
			log.Error(err, "the certificate could not be read, what was served before stays", "dir", f.Dir)
		}
		return
	}
	served, problem := f.Held.Offer(found, time.Now())
	if served {
		log.Info("serving a certificate", "from", f.Dir, "notAfter", found.Leaf.NotAfter.Format(time.RFC3339))
	}
	if problem != nil {
		log.Error(problem, "the certificate is of no use; have who writes it renew it", "dir", f.Dir)
	}
}

func (f Files) read() (*Pair, error) {
	certificate, err := os.ReadFile(filepath.Join(f.Dir, "tls.crt"))
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(f.Dir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("read key of the certificate: %w", err)
	}
	found, err := Parse(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("read certificate of %s: %w", f.Dir, err)
	}
	return found, nil
}

// Keep reads the files until ctx ends.
func (f Files) Keep(ctx context.Context, log logr.Logger) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		f.Look(log)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
