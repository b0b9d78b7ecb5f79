// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// Spoils summarizes the quarantine of one scope.
type Spoils struct {
	N     int
	Since time.Time
	First *base.Undecodable
}

// SpoilsOf returns the quarantine of each scope that has one.
func (x *Indexer) SpoilsOf() map[base.ScopeID]Spoils {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if len(x.mu.bad) == 0 {
		return nil
	}
	out := make(map[base.ScopeID]Spoils)
	for key, u := range x.mu.bad {
		for scope := range x.mu.rows.At(int(x.mu.at[key])).Scopes.All() {
			s := out[scope]
			s.N++
			if s.First == nil || u.Since.Before(s.Since) || u.Since.Equal(s.Since) && base.CompareKeys(key, s.First.Key) < 0 {
				s.First, s.Since = u, u.Since
			}
			out[scope] = s
		}
	}
	return out
}
