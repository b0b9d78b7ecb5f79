// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// Root is where the console is served, and Path, below it, the JSON.
const (
	Root = "/debug/flyball/"
	Path = Root + Version + "/"
)

// Handler answers with views of p as JSON, below Path.
func Handler(p Program) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path+"overview", func(w http.ResponseWriter, _ *http.Request) { answer(w, p.Parts().Of(), nil) })
	mux.HandleFunc("GET "+Path+"controllers/{name}/keys", func(w http.ResponseWriter, r *http.Request) {
		q := Query{Filter: r.FormValue("filter"), Contains: r.FormValue("contains"), State: r.FormValue("state"), Sort: r.FormValue("sort")}
		var err error
		for name, number := range map[string]*int{"offset": &q.Offset, "limit": &q.Limit} {
			if text := r.FormValue(name); text != "" && err == nil {
				if *number, err = strconv.Atoi(text); err != nil || *number < 0 {
					err = bad("%s is %q; give a whole number from 0", name, text)
				}
			}
		}
		if err != nil {
			answer(w, nil, err)
			return
		}
		page, err := KeysOf(p, r.PathValue("name"), q)
		answer(w, page, err)
	})
	mux.HandleFunc("GET "+Path+"controllers/{name}/key", func(w http.ResponseWriter, r *http.Request) {
		key, err := KeyOf(p, r.PathValue("name"), r.FormValue("key"))
		answer(w, key, err)
	})
	return mux
}

// answer sends a view, or an error as {"error": "…"}.
func answer(w http.ResponseWriter, view any, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(StatusOf(err))
		view = map[string]string{"error": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(view) // the client may have gone
}
