// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/kube"
)

// ScopeQuarantine summarizes the quarantine of one scope.
type ScopeQuarantine struct {
	N     int
	Since time.Time
	First *kube.Undecodable
}

// QuarantineByScope returns the quarantine of each scope that has one.
func (x *Indexer) QuarantineByScope() map[base.ScopeID]ScopeQuarantine {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if len(x.mu.quarantine) == 0 {
		return nil
	}
	out := make(map[base.ScopeID]ScopeQuarantine)
	for key, u := range x.mu.quarantine {
		for scope := range x.mu.rows.At(int(x.mu.at[key])).Scopes.All() {
			s := out[scope]
			s.N++
			if s.First == nil || u.Since.Before(s.Since) || u.Since.Equal(s.Since) && kube.CompareKeys(key, s.First.Key) < 0 {
				s.First, s.Since = u, u.Since
			}
			out[scope] = s
		}
	}
	return out
}
