// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"

	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/state"
)

// withQuarantine returns s with its quarantine q: Live becomes DecodingErrors while
// there are undecodable objects. The Reflector knows the stream, the Indexer
// the objects.
func withQuarantine(s state.Scope, q store.ScopeQuarantine) state.Scope {
	s.Undecodable = q.N
	if s.State != state.Live || q.N+s.Unreadable == 0 {
		return s
	}
	s.State = state.DecodingErrors
	if q.N > 0 {
		err := q.First.Err
		if cause := errors.Unwrap(err); cause != nil {
			err = cause // the text has the key already
		}
		s.Reason = fmt.Sprintf("%d undecodable, the first is %s: %v", q.N, q.First.Key, err)
		if q.Since.After(s.Since) {
			s.Since = q.Since
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
