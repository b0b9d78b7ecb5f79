// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/simulate"
)

// calls reports whether a call with this method can change something.
func calls(method string) bool {
	return slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, method)
}

// runText names the reconcile of a context, as an Event does; empty: there is none.
func runText(ctx context.Context) string {
	t := contextvalues.TaskOf(ctx)
	if t == nil {
		return ""
	}
	controller, key := t.Name()
	return controller + " " + strings.TrimPrefix(key, "/")
}

// services are the names of the Services of a World, and the numbers of their calls.
type services struct {
	mu struct {
		sync.Mutex
		names []string
		calls int
	}
}

func (s *services) add(name string) (added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.mu.names, name) {
		return false
	}
	s.mu.names = append(s.mu.names, name)
	return true
}

// number returns the number of a new call, which is negative: the server's are not.
func (s *services) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.calls++
	return -s.mu.calls
}

func isCall(r *simulate.Request) bool { return r != nil && r.Number < 0 }

// kinds returns the names as kinds, which triggers of faults use.
func (s *services) kinds() (out []schema.GroupKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.mu.names {
		out = append(out, schema.GroupKind{Kind: name})
	}
	return out
}
