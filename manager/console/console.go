// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"embed"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// Program is what a console shows. *manager.Manager is one, and that of the bridge for
// controller-runtime.
type (
	Program    = inspect.Program
	Parts      = inspect.Parts
	Leadership = inspect.Leadership
	Sharing    = inspect.Sharing
	Controlled = inspect.Controlled
)

// Path is where the console is served.
const Path = inspect.Root

const (
	mostStreams = 16
	refreshed   = time.Second // between two looks for changes, at least
	share       = 50          // an open page takes at most a fiftieth of a processor
	// longest is how long one answer of events lasts. The browser asks again, and is authorized anew.
	longest  = 5 * time.Minute
	patience = 10 * time.Second // with a client that does not read
	perPage  = 100              // keys
)

//go:embed assets/*.css assets/*.js
var assets embed.FS

// Handler returns the pages of p, below Path. It asks p only to answer a request.
func Handler(p Program) http.Handler {
	c := &console{program: p, streams: make(chan struct{}, mostStreams)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path+"{$}", c.serve("", c.overview))
	mux.HandleFunc("GET "+Path+"informers", c.serve("informers", c.informers))
	mux.HandleFunc("GET "+Path+"replicas", c.serve("replicas", c.replicas))
	mux.HandleFunc("GET "+Path+"controllers/{name}", c.serve("controllers", c.keys))
	mux.HandleFunc("GET "+Path+"controllers/{name}/key", c.serve("controllers", c.key))
	mux.HandleFunc("POST "+Path+"controllers/{name}/{action}", c.act)
	mux.HandleFunc("GET "+Path+"search", c.serve("search", c.search))
	mux.HandleFunc("GET "+Path+"static/{file}", serveAsset)
	return secured(mux)
}

// JSON returns a handler that answers with p as JSON, below JSONPath. A manager serves it by itself.
func JSON(p Program) http.Handler { return inspect.Handler(p) }

// JSONPath is where the JSON is served.
const JSONPath = inspect.Path

type console struct {
	program Program
	streams chan struct{} // a token for each open page
}

// secured forbids whatever the pages do not need.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	types := map[string]string{
		"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "idiomorph.min.js": "text/javascript; charset=utf-8",
	}
	if types[name] == "" {
		http.NotFound(w, r)
		return
	}
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[name])
	w.Header().Set("Cache-Control", "max-age=60")
	_, _ = w.Write(data) // the client may have gone
}

// content is what a page shows, at one moment.
type content interface{ write(w *writer) }

// view makes the content of a page. before is what it was a moment ago, nil at first: rates are made
// from both. status is that of the answer.
type view func(r *http.Request, before content) (title string, now content, status int)

// serve answers with the page, or, to who asks for events, with its content each time that it
// changes.
func (c *console) serve(page string, v view) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "text/event-stream" {
			c.stream(w, r, v)
			return
		}
		title, now, status := v(r, nil)
		var main writer
		now.write(&main)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, c.layout(title, page, r.FormValue("q"), markup(main.String()))) // the client may have gone
	}
}

// stream sends the content of a page each time that it has changed, until the client goes or the
// program stops.
func (c *console) stream(w http.ResponseWriter, r *http.Request, v view) {
	select {
	case c.streams <- struct{}{}:
		defer func() { <-c.streams }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "as many pages are open as the console serves; close one", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	end := time.Now().Add(longest)
	var before content
	sent := ""
	for {
		began := time.Now()
		_, now, _ := v(r, before)
		before = now
		var main writer
		if now.write(&main); main.String() != sent {
			if sent = main.String(); sendEvent(w, sent) != nil {
				return
			}
		}
		if stops := c.program.Stopping(); stops || time.Now().After(end) || !sleep.For(r.Context(), max(refreshed, share*time.Since(began))) {
			return
		}
	}
}

// sendEvent sends data, which may have several lines.
func sendEvent(w http.ResponseWriter, data string) error {
	var out strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(data, "\r", " ")) { // which ends a line, too
		out.WriteString("data: ")
		out.WriteString(strings.TrimSuffix(line, "\n"))
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(patience)) // where there is a connection
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	if _, err := io.WriteString(w, out.String()); err != nil {
		return err
	}
	return control.Flush()
}
