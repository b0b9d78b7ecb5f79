// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// newAccess returns what decides about the requests to s.
func newAccess(s *Server, opts Options) *access.Control {
	tokens := map[string]access.User{}
	for token, user := range opts.Tokens {
		tokens[token] = access.User(user)
	}
	return &access.Control{
		Authorization: opts.Authorization, User: cmp.Or(opts.User, "simulated"), Tokens: tokens, Seed: opts.Seed,
		Objects: storedObjects{s}, Gate: s.accepts,
	}
}

// storedObjects are what a server has stored.
type storedObjects struct{ server *Server }

// Get is one object; nil: there is none.
func (o storedObjects) Get(r schema.GroupResource, key types.NamespacedName) *object.Object {
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	return o.server.mu.log.Get(r, key)
}

// Begin locks what is stored.
func (o storedObjects) Begin() write.Tx {
	o.server.mu.Lock()
	return o.server.storeLocked()
}

// Lists are the objects of some resources, all at one revision.
func (o storedObjects) Lists(of ...schema.GroupResource) [][]*object.Object {
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	out := make([][]*object.Object, len(of))
	for i, r := range of {
		out[i], _ = o.server.mu.log.List(r, o.server.mu.log.Revision)
	}
	return out
}
