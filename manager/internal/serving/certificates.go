// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/go-logr/logr"
)

// certificates maintain the certificate of a server.
type certificates interface {
	Look(log logr.Logger)
	// Keep maintains it until ctx ends.
	Keep(ctx context.Context, log logr.Logger)
}

// certificatesOf returns the certificates of a directory, stored in held; empty:
// self-signed.
func certificatesOf(dir string, held *keypair.Holder) certificates {
	if dir != "" {
		return keypair.Files{Dir: dir, Held: held}
	}
	return selfMade{held}
}

// selfMade maintains a self-signed certificate in memory.
type selfMade struct{ held *keypair.Holder }

// Look creates a certificate if there is none, or if it is due.
func (s selfMade) Look(log logr.Logger) {
	if have, _ := s.held.Get(); have != nil && !have.Due(time.Now()) {
		return
	}
	made, err := newSelfMade(time.Now())
	if err != nil {
		if s.held.Miss(err) {
			log.Error(err, "Cannot create a certificate")
		}
		return
	}
	s.held.Offer(made, time.Now())
}

func newSelfMade(now time.Time) (*keypair.Pair, error) {
	by, err := keypair.NewAuthority(now, "flyball-metrics")
	if err != nil {
		return nil, err
	}
	made, err := by.Server(now)
	if err != nil {
		return nil, err
	}
	return keypair.Parse(made.Cert, made.Key)
}

// Keep renews the certificate until ctx ends.
func (s selfMade) Keep(ctx context.Context, log logr.Logger) {
	for sleep.For(ctx, time.Hour) {
		s.Look(log)
	}
}
