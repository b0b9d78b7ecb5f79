// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"net/http"

	"github.com/flyball-dev/flyball/simulate/kit"
)

// A stand-in for a service outside the cluster, in which each object is registered once.
func ExampleWorld_Service() { _ = withDNS }

func withDNS(w *kit.World) {
	dns := w.Service("dns", &registry{given: map[string]string{}}, func(r *http.Request, code int) string {
		if r.Method != http.MethodPost || code != http.StatusCreated {
			return ""
		}
		return r.Header.Get("Key") // the UID of the object
	})
	w.Run(setUpRegistrar(dns)) // its http.Client has dns as Transport
}
