// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"

	"github.com/flyball-dev/flyball/internal/sleep"
)

const (
	profiledFor  = 30 * time.Second // by default
	profiledMost = 5 * time.Minute
)

// Profiles serves what net/http/pprof does. That package is not linked, because it also
// registers itself in http.DefaultServeMux, without the guard.
func Profiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		for _, p := range pprof.Profiles() {
			fmt.Fprintf(w, "%s\t%d\n", p.Name(), p.Count())
		}
		fmt.Fprint(w, "profile\t?seconds=30\ntrace\t?seconds=1\n")
	})
	mux.HandleFunc("GET /debug/pprof/{name}", serveProfile)
	mux.HandleFunc("GET /debug/pprof/profile", recorded(profiledFor, pprof.StartCPUProfile, pprof.StopCPUProfile))
	mux.HandleFunc("GET /debug/pprof/trace", recorded(time.Second, trace.Start, trace.Stop))
}

func serveProfile(w http.ResponseWriter, r *http.Request) {
	p := pprof.Lookup(r.PathValue("name"))
	if p == nil {
		http.Error(w, fmt.Sprintf("there is no profile %q; /debug/pprof/ lists them", r.PathValue("name")), http.StatusNotFound)
		return
	}
	if p.Name() == "heap" && r.FormValue("gc") != "" {
		runtime.GC()
	}
	debug, err := number(r, "debug", 0)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if debug > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		asFile(w, p.Name())
	}
	_ = p.WriteTo(w, debug) // the client may have gone
}

// recorded answers with a recording of what happens from now on. Only one runs at a
// time.
func recorded(usual time.Duration, start func(io.Writer) error, stop func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seconds, err := number(r, "seconds", int(usual.Seconds()))
		if most := int(profiledMost.Seconds()); err == nil && (seconds < 1 || seconds > most) {
			err = fmt.Errorf("seconds is %d; give 1 to %d", seconds, most)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asFile(w, r.URL.Path[len("/debug/pprof/"):])
		if err := start(w); err != nil {
			w.Header().Del("Content-Disposition")
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		defer stop()
		sleep.For(r.Context(), time.Duration(seconds)*time.Second)
	}
}

func number(r *http.Request, name string, otherwise int) (int, error) {
	text := r.FormValue(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s is %q; give a whole number", name, text)
	}
	return n, nil
}

func asFile(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", "attachment; filename="+strconv.Quote(name))
}
