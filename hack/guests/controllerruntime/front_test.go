// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// front is a proxy of an API server that counts the requests of its one client, who is an
// administrator. Requests for leases pass uncounted.
type front struct {
	proxy      *httputil.ReverseProxy
	server     http.RoundTripper // reaches the server
	base       *url.URL          // of the server
	kubeconfig string            // the file for the client
	writes     *regexp.Regexp    // those that only a reconcile makes, as "PUT /path"
	first      func(time.Time)   // is called at the first of them
	once       sync.Once
	mu         struct {
		sync.Mutex
		counts requestCounts
	}
}

// requestCounts are numbers of requests.
type requestCounts struct {
	Verbs     map[string]int // by verb of Kubernetes; discovery is one
	Conflicts map[string]int // answers 409 to updates and patches, by path
	NoOps     map[string]int // updates and patches that leave the resourceVersion, by path
}

// sum returns the number of all.
func sum(counts map[string]int) (n int) {
	for _, times := range counts {
		n += times
	}
	return n
}

// all returns the number of requests but for discovery.
func (c requestCounts) all() int { return sum(c.Verbs) - c.Verbs["discovery"] }

// newFront starts a front of the server, which speaks HTTP/2 as the server does.
func newFront(t *testing.T, config *rest.Config, writes string, first func(time.Time)) *front {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	base, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{server: transport, base: base, writes: regexp.MustCompile(writes), first: first}
	f.mu.counts = requestCounts{map[string]int{}, map[string]int{}, map[string]int{}}
	f.proxy = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(base) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	s := httptest.NewUnstartedServer(f)
	s.EnableHTTP2, s.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	to := clientcmdapi.NewConfig()
	to.Clusters["front"] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: ca}
	to.Contexts["front"] = &clientcmdapi.Context{Cluster: "front"}
	to.CurrentContext = "front"
	f.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*to, f.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return f
}

// counted returns the numbers so far.
func (f *front) counted() requestCounts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.mu.counts
	return requestCounts{maps.Clone(c.Verbs), maps.Clone(c.Conflicts), maps.Clone(c.NoOps)}
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verb, object, lease := requested(r)
	if lease {
		f.proxy.ServeHTTP(w, r)
		return
	}
	f.mu.Lock()
	f.mu.counts.Verbs[verb]++
	f.mu.Unlock()
	if f.writes.MatchString(r.Method + " " + r.URL.Path) {
		f.once.Do(func() { f.first(time.Now()) })
	}
	if verb != "update" && verb != "patch" {
		f.proxy.ServeHTTP(w, r)
		return
	}
	before := f.version(object)
	answer := &statusWriter{ResponseWriter: w}
	f.proxy.ServeHTTP(answer, r)
	noOp := answer.status == http.StatusOK && before != "" && f.version(object) == before
	f.mu.Lock()
	defer f.mu.Unlock()
	if answer.status == http.StatusConflict {
		f.mu.counts.Conflicts[r.Method+" "+r.URL.Path]++
	}
	if noOp {
		f.mu.counts.NoOps[r.Method+" "+r.URL.Path]++
	}
}

// version returns the resourceVersion of the object at a path. Empty: there is none.
func (f *front) version(path string) string {
	at := *f.base
	at.Path = path
	answer, err := f.server.RoundTrip(&http.Request{
		Method: http.MethodGet, URL: &at, Header: http.Header{"Accept": {"application/json"}},
	})
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	var object struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if answer.StatusCode != http.StatusOK || json.NewDecoder(answer.Body).Decode(&object) != nil {
		return ""
	}
	return object.Metadata.ResourceVersion
}

// verbs are those of requests that are not reads.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
	http.MethodDelete: "delete",
}

// requested returns what a request asks for, and the path of its object without a subresource.
func requested(r *http.Request) (verb, object string, lease bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	skip := map[string]int{"api": 2, "apis": 3}[parts[0]]
	if skip == 0 || len(parts) <= skip {
		return "discovery", "", false
	}
	if parts[skip] == "namespaces" && len(parts) > skip+2 {
		skip += 2
	}
	rest := parts[skip:] // resource, name, subresource
	object = "/" + strings.Join(parts[:min(len(parts), skip+2)], "/")
	lease = rest[0] == "leases"
	switch {
	case r.Method != http.MethodGet:
		verb = verbs[r.Method]
	case r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1":
		verb = "watch"
	case len(rest) > 1:
		verb = "get"
	default:
		verb = "list"
	}
	return verb, object, lease
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the proxy flush.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
