// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"time"

	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// Program is what a console shows. *manager.Manager is one.
type Program = inspect.Program

// Path is where the console is served.
const Path = "/debug/flyball/"

const (
	mostStreams = 16
	refreshed   = time.Second // between two looks for changes, at least
	share       = 50          // a page takes at most a fiftieth of a processor
	perPage     = 100         // keys
)

//go:embed assets
var assets embed.FS

// Handler returns the pages of p, below Path. It asks p only to answer a request.
func Handler(p Program) http.Handler {
	c := &console{program: p, streams: make(chan struct{}, mostStreams)}
	c.pages = template.Must(template.New("").Funcs(functions).ParseFS(assets, "assets/*.html"))
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path+"{$}", c.serve(c.overview))
	mux.HandleFunc("GET "+Path+"informers", c.serve(c.informers))
	mux.HandleFunc("GET "+Path+"controllers/{name}", c.serve(c.keys))
	mux.HandleFunc("GET "+Path+"controllers/{name}/key", c.serve(c.key))
	mux.HandleFunc("GET "+Path+"search", c.serve(c.search))
	mux.HandleFunc("GET "+Path+"static/{file}", serveAsset)
	return secured(mux)
}

type console struct {
	program Program
	pages   *template.Template
	streams chan struct{} // a token for each open page
}

// page is one page at one moment.
type page struct {
	Title, Page, Program, Query string
	Main                        template.HTML // rendered by the template named Page
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

// view is the content of a page. before is what it was a moment ago, nil at first: rates are made
// from both. status is that of the answer.
type view func(r *http.Request, before any) (title, name string, data any, status int)

// serve answers with the page, or, to who asks for events, with its content each time that it
// changes.
func (c *console) serve(v view) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "text/event-stream" {
			c.stream(w, r, v)
			return
		}
		title, name, data, status := v(r, nil)
		main, err := c.render(name, data)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		whole, err := c.render("layout.html", page{
			Title: title, Page: name, Program: c.program.Parts().Program, Query: r.FormValue("q"), Main: template.HTML(main), //nolint:gosec // rendered by a template
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write(whole) // the client may have gone
	}
}

func (c *console) render(name string, data any) ([]byte, error) {
	var out bytes.Buffer
	err := c.pages.ExecuteTemplate(&out, name, data)
	return out.Bytes(), err
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
	var before any
	var sent []byte
	for {
		began := time.Now()
		_, name, data, _ := v(r, before)
		before = data
		main, err := c.render(name, data)
		if err != nil {
			return
		}
		if !bytes.Equal(main, sent) {
			if sendEvent(w, main) != nil {
				return
			}
			sent = main
		}
		if !sleep.For(r.Context(), max(refreshed, share*time.Since(began))) || c.program.Parts().Phase == "stopping" {
			return
		}
	}
}

// sendEvent sends data, which may have several lines.
func sendEvent(w http.ResponseWriter, data []byte) error {
	var out bytes.Buffer
	for line := range bytes.Lines(data) {
		out.WriteString("data: ")
		out.Write(bytes.TrimRight(line, "\r\n"))
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
	if _, err := w.Write(out.Bytes()); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}
