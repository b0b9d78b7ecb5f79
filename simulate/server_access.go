// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/store"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// newAccess returns the authentication and authorization of s.
func newAccess(s *Server, opts Options) *access.Control {
	tokens := map[string]access.User{}
	for token, user := range opts.Tokens {
		tokens[token] = access.User(user)
	}
	return &access.Control{
		Authorization: opts.Authorization, User: cmp.Or(opts.User, "simulated"), Tokens: tokens, Seed: opts.Seed, Issuer: opts.TokenIssuer,
		Objects: s.store, Gate: s.requests.Accepts,
	}
}

// writeStore is the store as writes see it.
type writeStore struct{ *store.Store }

// Begin locks the store.
func (w writeStore) Begin() write.Tx { return w.Store.Begin() }
