// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package aim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// ServeHTTP lets programs in any language aim faults. POST arms the faults of a JSON list, GET returns those that
// wait for their writes or times and those that have happened, and DELETE ends all.
func (p *Port) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		var faults []Fault
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
		body.DisallowUnknownFields()
		if err := body.Decode(&faults); err != nil {
			http.Error(w, fmt.Sprintf("read the faults: %v; send a list, such as [{\"fault\":\"lose response\",\"before\":\"create Pod\",\"nth\":1}]", err), http.StatusBadRequest)
			return
		}
		if slices.ContainsFunc(faults, func(f Fault) bool { return f.User }) {
			http.Error(w, "this server does not know which writes are the user's; leave out \"user\"", http.StatusBadRequest)
			return
		}
		if err := p.Control.Arm(faults...); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	case http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string][]Fault{"waiting": p.Control.Open(), "happened": p.Control.Happened()})
	case http.MethodDelete:
		p.Control.disarm()
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "POST arms faults, GET shows them, DELETE ends them", http.StatusMethodNotAllowed)
	}
}

// Port is the HTTP interface of a Control.
type Port struct{ Control *Control }
