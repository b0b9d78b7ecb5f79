// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package keypair

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
)

// period is how often the files are read. It is short compared with the minute
// that a kubelet may take to show a changed Secret.
const period = 5 * time.Second

// Files updates Held from tls.crt and tls.key in Dir.
type Files struct {
	Dir  string
	Held *Holder
	// OwnOnly rejects a directory or file that belongs to a user other than
	// root and the process's: a default path may be writable by others.
	OwnOnly bool
}

// Look reads the files once.
func (f Files) Look(log logr.Logger) {
	found, err := f.read()
	if err != nil {
		if f.Held.Miss(err) {
			log.Error(err, "Cannot read the certificate; "+f.Held.Meanwhile(), "dir", f.Dir)
		}
		return
	}
	served, problem := f.Held.Offer(found, time.Now())
	if served {
		log.Info("Serving a certificate", "from", f.Dir, "notAfter", found.Leaf.NotAfter.Format(time.RFC3339))
	}
	if problem != nil {
		log.Error(problem, "The certificate is not valid; renew it", "dir", f.Dir)
	}
}

func (f Files) read() (*Pair, error) {
	if info, err := os.Stat(f.Dir); f.OwnOnly && err == nil {
		if err := checkOwner(f.Dir, info, os.Geteuid()); err != nil {
			return nil, fmt.Errorf("read certificate: %w; set the directory explicitly to use it", err)
		}
	}
	certificate, err := f.readFile("tls.crt")
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	key, err := f.readFile("tls.key")
	if err != nil {
		return nil, fmt.Errorf("read key of the certificate: %w", err)
	}
	found, err := Parse(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("read certificate of %s: %w", f.Dir, err)
	}
	return found, nil
}

// readFile checks the owner of the very file that it reads.
func (f Files) readFile(name string) ([]byte, error) {
	file, err := os.Open(filepath.Join(f.Dir, name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if f.OwnOnly {
		if err := checkOwner(file.Name(), info, os.Geteuid()); err != nil {
			return nil, fmt.Errorf("%w; set the directory explicitly to use it", err)
		}
	}
	return io.ReadAll(file)
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
