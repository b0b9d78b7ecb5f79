// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package health

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

// Check is one check of a probe.
type Check struct {
	Name string
	Ask  func(ctx context.Context) error
	// Passing says why a failure does not count; empty: it counts.
	Passing string
}

// Answered returns a check with a known result.
func Answered(name string, err error) Check {
	return Check{Name: name, Ask: func(context.Context) error { return err }}
}

// Add adds a check of the program, unless its name is taken.
func Add(to *[]Check, name string, ask func(ctx context.Context) error) error {
	switch {
	case name == "":
		return errors.New("add check: the name is empty; the answers of the probe show it")
	case ask == nil:
		return fmt.Errorf("add check %q: the function is nil", name)
	case slices.ContainsFunc(*to, func(c Check) bool { return c.Name == name }):
		return fmt.Errorf("add check %q: there is one of that name", name)
	}
	*to = append(*to, Check{Name: name, Ask: ask})
	return nil
}

type probe struct {
	name   string
	no     int // the status of a failure
	checks func() []Check
}

// Handler serves /readyz with the checks of ready, and /livez and /healthz with those
// of live.
func Handler(ready, live func() []Check) http.Handler {
	mux := http.NewServeMux()
	for _, p := range []probe{
		{"readyz", http.StatusServiceUnavailable, ready},
		{"livez", http.StatusInternalServerError, live},
		{"healthz", http.StatusInternalServerError, live},
	} {
		mux.Handle("GET /"+p.name, p)
		mux.Handle("GET /"+p.name+"/{check...}", p)
	}
	return mux
}

// ServeHTTP runs all checks, or the one in the path, and answers "ok", or a line for
// each check if one fails or with ?verbose.
func (p probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")

	checks := p.checks()
	if only := r.PathValue("check"); only != "" {
		checks = slices.DeleteFunc(checks, func(c Check) bool { return c.Name != only })
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

// answer runs the checks that are not excluded.
func (p probe) answer(ctx context.Context, checks []Check, leaveOut []string) (text string, ok bool) {
	var b strings.Builder
	failed := 0
	for _, c := range checks {
		if slices.Contains(leaveOut, c.Name) {
			fmt.Fprintf(&b, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		err := askGuarded(ctx, c)
		if err != nil && c.Passing != "" {
			fmt.Fprintf(&b, "[+]%s does not count: %s: %s\n", c.Name, c.Passing, strings.ReplaceAll(err.Error(), "\n", "\n\t"))
			continue
		}
		if err != nil {
			failed++
			fmt.Fprintf(&b, "[-]%s failed: %s\n", c.Name, strings.ReplaceAll(err.Error(), "\n", "\n\t"))
			continue
		}
		fmt.Fprintf(&b, "[+]%s ok\n", c.Name)
	}
	for _, name := range leaveOut {
		if !slices.ContainsFunc(checks, func(c Check) bool { return c.Name == name }) {
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

// askGuarded runs c; a panic counts as a failure.
func askGuarded(ctx context.Context, c Check) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c.Ask(ctx)
}
