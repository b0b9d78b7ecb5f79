// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/internal/textlog"
)

// check is one question that a probe asks.
type check struct {
	name string
	ask  func(ctx context.Context) error
	// passing says why it does not count for the probe; empty: it counts.
	passing string
}

// AddReadyCheck has /readyz ask one thing more, under a name. ask may be called
// by several requests at the same time; its context ends with the request. A
// panic of it is a no. It is an error when the name is empty or taken, or ask
// nil.
func (m *Manager) AddReadyCheck(name string, ask func(ctx context.Context) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return addCheck(&m.mu.ready, name, ask)
}

// AddLiveCheck is AddReadyCheck for /livez and /healthz. A no there has the
// kubelet restart the process: ask for nothing that a restart does not heal.
func (m *Manager) AddLiveCheck(name string, ask func(ctx context.Context) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return addCheck(&m.mu.live, name, ask)
}

func addCheck(to *[]check, name string, ask func(ctx context.Context) error) error {
	switch {
	case name == "":
		return errors.New("add check: the name is empty; the answers of the probe show it")
	case ask == nil:
		return fmt.Errorf("add check %q: the function is nil", name)
	case slices.ContainsFunc(*to, func(c check) bool { return c.name == name }):
		return fmt.Errorf("add check %q: there is one of that name", name)
	}
	*to = append(*to, check{name: name, ask: ask})
	return nil
}

// probe answers one of the paths.
type probe struct {
	name   string
	no     int // the status of a no
	checks func() []check
}

func (m *Manager) healthHandler() http.Handler {
	mux := http.NewServeMux()
	for _, p := range []probe{
		{"readyz", http.StatusServiceUnavailable, m.readyChecks},
		{"livez", http.StatusInternalServerError, m.liveChecks},
		{"healthz", http.StatusInternalServerError, m.liveChecks},
	} {
		mux.Handle("GET /"+p.name, p)
		mux.Handle("GET /"+p.name+"/{check...}", p)
	}
	return mux
}

// ServeHTTP asks all checks, or the one that the path names, and answers with
// "ok", or with a line for each when one fails or ?verbose asks for it.
func (p probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")

	checks := p.checks()
	if only := r.PathValue("check"); only != "" {
		checks = slices.DeleteFunc(checks, func(c check) bool { return c.name != only })
		if len(checks) == 0 {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, "%s has no check %q\n", p.name, only)
			return
		}
	}
	query := r.URL.Query()
	text, ok := p.answer(r.Context(), checks, query["exclude"])
	switch {
	case !ok:
		w.WriteHeader(p.no)
		fmt.Fprint(w, text)
	case query.Has("verbose"):
		fmt.Fprint(w, text)
	default:
		fmt.Fprint(w, "ok")
	}
}

// answer asks the checks that are not left out.
func (p probe) answer(ctx context.Context, checks []check, leaveOut []string) (text string, ok bool) {
	var b strings.Builder
	failed := 0
	for _, c := range checks {
		if slices.Contains(leaveOut, c.name) {
			fmt.Fprintf(&b, "[+]%s excluded: ok\n", c.name)
			continue
		}
		err := askGuarded(ctx, c)
		if err != nil && c.passing != "" {
			fmt.Fprintf(&b, "[+]%s does not count: %s: %s\n", c.name, c.passing, strings.ReplaceAll(err.Error(), "\n", "\n\t"))
			continue
		}
		if err != nil {
			failed++
			fmt.Fprintf(&b, "[-]%s failed: %s\n", c.name, strings.ReplaceAll(err.Error(), "\n", "\n\t"))
			continue
		}
		fmt.Fprintf(&b, "[+]%s ok\n", c.name)
	}
	for _, name := range leaveOut {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.name == name }) {
			fmt.Fprintf(&b, "warn: exclude=%s names no check\n", name)
		}
	}
	if failed > 0 {
		fmt.Fprintf(&b, "%s check failed\n", p.name)
	} else {
		fmt.Fprintf(&b, "%s check passed\n", p.name)
	}
	return textlog.VisibleLines(b.String()), failed == 0
}

// askGuarded asks c; a panic is a no.
func askGuarded(ctx context.Context, c check) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c.ask(ctx)
}
