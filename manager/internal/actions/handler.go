// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"net/http"
	"runtime/pprof"
	"strconv"

	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// Handler takes actions below inspect.Path, and passes what is below inspect.Root to pages; nil: there
// are none. It refuses requests of a web page of another origin, also those of a browser that sends
// the credentials of its user along.
func (a *Actor) Handler(pages http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+inspect.Path, inspect.Actions(a))
	mux.HandleFunc("POST "+inspect.Path+"profile/{name}", a.profile)
	if pages != nil {
		mux.Handle("POST "+inspect.Root, pages)
	}
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error": "an action is taken only from a page of this program, and not from one of another origin"}`, http.StatusForbidden)
	}))
	return sameOrigin.Handler(mux)
}

// profile answers with a profile of the heap or of the goroutines: where memory was allocated and what
// runs, without any value of the program. The format 2 of goroutines, with the arguments of functions,
// is refused.
func (a *Actor) profile(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	name, format := r.PathValue("name"), r.FormValue("debug")
	p := pprof.Lookup(name)
	switch {
	case p == nil || name != "heap" && name != "goroutine":
		http.Error(w, fmt.Sprintf("there is no profile %q; take heap or goroutine", name), http.StatusNotFound)
		return
	case format != "" && format != "0" && format != "1":
		http.Error(w, fmt.Sprintf("debug is %q; give 0 for go tool pprof, or 1 for text", format), http.StatusBadRequest)
		return
	}
	by := inspect.UserOf(r.Context())
	textlog.Unthrottled(a.opts.Log).Info("A user has acted on this program", "action", "profile", "profile", name, "by", by)
	a.send(a.self(), "profile", "ProfileTaken", name, by, "a profile")
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	debug := 0
	if h.Set("Content-Type", "application/octet-stream"); format == "1" {
		debug = 1
		h.Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(name+".pb.gz"))
	}
	_ = p.WriteTo(w, debug) // the client may have gone
}
