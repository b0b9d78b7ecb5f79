// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/testing/hostile"
)

// proxy forwards to a real API server and falsifies some of its answers.
type proxy struct {
	*httptest.Server
	bomb    []byte       // compressed
	bombs   atomic.Int64 // sent
	busy    atomic.Int64 // 429 sent
	garbage atomic.Int64 // lines sent
}

func newProxy(t *testing.T, cfg *rest.Config) *proxy {
	t.Helper()
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{bomb: bomb(2 << 30)}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ModifyResponse: func(resp *http.Response) error {
			if resp.Request.URL.Query().Get("watch") == "true" && resp.StatusCode == http.StatusOK {
				resp.Body = &littered{ReadCloser: resp.Body, p: p}
				resp.Header.Del("Content-Length")
			}
			return nil
		},
	}
	var n atomic.Int64
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepted := slices.DeleteFunc(strings.Split(r.Header.Get("Accept"), ","), func(clause string) bool {
			return strings.HasPrefix(clause, "application/vnd.kubernetes.protobuf") // garbage in JSON is the harder case
		})
		r.Header.Set("Accept", strings.Join(accepted, ","))
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			switch n.Add(1) % 4 {
			case 0:
				p.bombs.Add(1)
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(p.bomb)
				return
			case 1, 2:
				p.busy.Add(1)
				w.Header().Set("Retry-After", "1")
				http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"reason":"TooManyRequests"}`, http.StatusTooManyRequests)
				return
			}
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// littered inserts garbage after each line of a watch.
type littered struct {
	io.ReadCloser
	p    *proxy
	mu   sync.Mutex
	rest bytes.Buffer
	next int
}

func (l *littered) Read(out []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rest.Len() == 0 {
		buf := make([]byte, 32<<10)
		n, err := l.ReadCloser.Read(buf)
		if err != nil {
			return 0, err
		}
		for _, part := range bytes.SplitAfter(buf[:n], []byte("\n")) {
			l.rest.Write(part)
			if bytes.HasSuffix(part, []byte("\n")) {
				all := hostile.Garbage()
				l.rest.Write(append(all[l.next%len(all)].Text, '\n'))
				l.next++
				l.p.garbage.Add(1)
			}
		}
	}
	return l.rest.Read(out)
}

// bomb returns a list of this many bytes, compressed.
func bomb(size int64) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level is valid
	_, _ = io.WriteString(z, `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{}`)
	chunk := bytes.Repeat([]byte(",{}"), 1<<20)
	for size > 0 {
		n, _ := z.Write(chunk)
		size -= int64(n)
	}
	_ = z.Close()
	return out.Bytes()
}
