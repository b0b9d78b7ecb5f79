// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// healthTable lists the checks of a real server of this version, in its order. The letters
// h, l and r name the endpoints that run a check.
//
//go:embed health.txt
var healthTable string

// checks returns the names of the checks of an endpoint; ok is false if the server does not
// have the endpoint.
func checks(endpoint string) (names []string, ok bool) {
	if !slices.Contains([]string{"healthz", "livez", "readyz"}, endpoint) {
		return nil, false
	}
	for line := range strings.Lines(healthTable) {
		where, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Contains(where, endpoint[:1]) {
			names = append(names, name)
		}
	}
	return names, true
}

// serveHealth answers the health endpoints and reports whether the path is one. A server
// that answers is healthy.
func (x *Index) serveHealth(w http.ResponseWriter, r *http.Request, path string) bool {
	endpoint, check, one := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	names, ok := checks(endpoint)
	switch {
	case !ok, one && !slices.Contains(names, check):
		return false
	case one:
		_, _ = w.Write([]byte("ok"))
		return true
	}
	excluded := r.URL.Query()["exclude"]
	var report strings.Builder
	for _, name := range names {
		if i := slices.Index(excluded, name); i >= 0 {
			excluded = slices.Delete(excluded, i, i+1)
			fmt.Fprintf(&report, "[+]%s excluded: ok\n", name)
			continue
		}
		fmt.Fprintf(&report, "[+]%s ok\n", name)
	}
	if len(excluded) > 0 {
		fmt.Fprintf(&report, "warn: some health checks cannot be excluded: no matches for %s\n", quoted(excluded))
	}
	fmt.Fprintf(&report, "%s check passed\n", endpoint)
	if !r.URL.Query().Has("verbose") {
		plain(w, "ok")
		return true
	}
	plain(w, report.String())
	return true
}

func quoted(names []string) string {
	slices.Sort(names)
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return strings.Join(names, ",")
}

func plain(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte(text))
}

// serveVersion answers /version.
func (x *Index) serveVersion(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		encode.Refuse(w, encode.Encoder{}, refusal.Method())
		return
	}
	info := version.Info{
		Major: "1", Minor: "37", EmulationMajor: "1", EmulationMinor: "37", MinCompatibilityMajor: "1", MinCompatibilityMinor: "36",
		GitVersion: x.Version(), GitCommit: "simulated", GitTreeState: "clean", BuildDate: time.Unix(0, 0).UTC().Format(time.RFC3339),
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	serveIndented(w, info)
}

// paths answers with the list of paths, for people to browse.
func (x *Index) paths(w http.ResponseWriter) {
	all := []string{"/api", "/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/version"}
	for _, g := range x.groups() {
		if g.name != "" {
			all = append(all, "/apis/"+g.name)
		}
		for _, v := range g.versions {
			all = append(all, v.path())
		}
	}
	for _, endpoint := range []string{"healthz", "livez", "readyz"} {
		all = append(all, "/"+endpoint)
		names, _ := checks(endpoint)
		for _, name := range names {
			all = append(all, "/"+endpoint+"/"+name)
		}
	}
	slices.Sort(all)
	serveIndented(w, metav1.RootPaths{Paths: all})
}

// serveIndented answers with indented JSON.
func serveIndented(w http.ResponseWriter, answer any) {
	body, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	encode.Respond(w, encode.Encoder{}, http.StatusOK, body)
}
