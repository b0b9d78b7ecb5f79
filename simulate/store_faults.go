// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The faults of what is stored, and of the watches that are open.

// Heal ends all faults of the server: watches receive what was held back, and corrupted
// objects can be decoded again. It undoes nothing else: watches that were muted stay muted.
func (s *Server) Heal() {
	tx := s.store.Begin()
	defer tx.End()
	s.requests.Heal()
	tx.Show(s.delivery.Heal())
	for _, p := range s.corrupted.Heal() {
		if restored := p.Restored(tx.Get(p.GroupResource, p.NamespacedName)); restored != nil {
			tx.Put(p.GroupResource, restored)
		}
	}
	tx.Deliver()
}

// Mute silences the present watches of a kind. They stay open.
func (s *Server) Mute(r schema.GroupResource) {
	tx := s.store.Begin()
	defer tx.End()
	tx.MuteWatches(r)
}

// CloseWatches ends the present watches of a kind without an error.
func (s *Server) CloseWatches(r schema.GroupResource) {
	tx := s.store.Begin()
	defer tx.End()
	tx.EndWatches(r)
}

// Compact removes the history of the store: lists and watches can no longer start from
// older versions.
func (s *Server) Compact() { s.store.Compact() }

// RestartCache ends all watches and removes the history that watches are served from, as
// a restart of the API server does. The store keeps its own.
func (s *Server) RestartCache() { s.store.DropCache() }

// Rewind undoes the last n revisions that are not compacted and ends all watches, as when
// the store is restored from a backup.
func (s *Server) Rewind(n int) {
	tx := s.store.Begin()
	defer tx.End()
	tx.Rewind(n)
	s.definitions.Restore(tx)
}

// RecreateBehindWatch deletes an object and creates it again under its name with another
// UID. Open watches do not receive the deletion.
func (s *Server) RecreateBehindWatch(r schema.GroupResource, key types.NamespacedName) error {
	tx := s.store.Begin()
	defer tx.End()
	kind := s.kinds.Stored(r)
	r = s.kinds.Held(r)
	old := tx.Get(r, key)
	if kind == nil || old == nil {
		return apierrors.NewNotFound(r, key.String())
	}
	s.delivery.DropOneMore(r)
	tx.Remove(r, key)
	_, err := s.writes.Direct(tx).Create(kind, old.Copy())
	return err
}

// Corrupt changes an object so that neither its JSON nor its protobuf can be decoded into
// the type of its kind. Its metadata stays readable. The next Put heals it.
func (s *Server) Corrupt(r schema.GroupResource, key types.NamespacedName) error {
	tx := s.store.Begin()
	defer tx.End()
	r = s.kinds.Held(r)
	old := tx.Get(r, key)
	if old == nil {
		return apierrors.NewNotFound(r, key.String())
	}
	tx.Put(r, s.corrupted.Corrupt(r, old))
	return nil
}
