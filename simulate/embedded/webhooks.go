// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"io"
	"net/http"
)

// inProcess is a transport to a handler in this process.
type inProcess struct{ handler http.Handler }

func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := &answer{header: http.Header{}, code: http.StatusOK}
	served := r.Clone(r.Context())
	served.RequestURI = r.URL.RequestURI()
	if served.Body == nil {
		served.Body = http.NoBody
	}
	t.handler.ServeHTTP(w, served)
	_ = served.Body.Close()
	return &http.Response{
		Status: http.StatusText(w.code), StatusCode: w.code, Header: w.header, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()),
	}, nil
}

// answer is a ResponseWriter that keeps what is written.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
