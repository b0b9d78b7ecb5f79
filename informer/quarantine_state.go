// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"time"
)

// spoils is what one scope has in quarantine.
type spoils struct {
	n     int
	since time.Time
	first *Undecodable
}

// spoilsOf is what each scope that has any has in quarantine.
func (x *Indexer[T]) spoilsOf() map[ScopeID]spoils {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if len(x.mu.bad) == 0 {
		return nil
	}
	out := make(map[ScopeID]spoils)
	for key, u := range x.mu.bad {
		for scope := range x.mu.rows.At(int(x.mu.at[key])).scopes.all() {
			s := out[scope]
			s.n++
			if s.first == nil || u.Since.Before(s.since) || u.Since.Equal(s.since) && compareKeys(key, s.first.Key) < 0 {
				s.first, s.since = u, u.Since
			}
			out[scope] = s
		}
	}
	return out
}

// spoiled is s as it stands when its scope has q in quarantine: what is Live
// in the Reflector has decoding errors as long as there are any. The Reflector
// knows how the stream is, the Indexer which objects came to what.
func (s ScopeState) spoiled(q spoils) ScopeState {
	s.Undecodable = q.n
	if s.State != StateLive || q.n+s.Unreadable == 0 {
		return s
	}
	s.State = StateDecodingErrors
	if q.n > 0 {
		err := q.first.Err
		if cause := errors.Unwrap(err); cause != nil {
			err = cause // the text has the key already
		}
		s.Reason = fmt.Sprintf("%d undecodable, the first is %s: %v", q.n, q.first.Key, err)
		if q.since.After(s.Since) {
			s.Since = q.since
		}
	}
	if s.Unreadable > 0 {
		if s.Reason != "" {
			s.Reason += "; "
		}
		s.Reason += fmt.Sprintf("%d without a readable name, the first: %s", s.Unreadable, s.UnreadableReason)
	}
	return s
}
