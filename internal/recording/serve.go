// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

const (
	defaultSeconds = 60
	mostSeconds    = 3600
	patience       = 30 * time.Second // with a client that reads slowly
)

// Handler answers with a recording of the next seconds: ?seconds=60, ?limit= bytes and
// ?redact=ConfigMap:data, any number of times, as Options has them. opts are the rest of the Options.
func (r *Recorder) Handler(opts Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seconds, opts, err := asked(req, opts)
		if err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		window, err := r.Open(opts)
		switch {
		case errors.Is(err, ErrOpen), errors.Is(err, ErrStopped):
			refuse(w, http.StatusConflict, err)
			return
		case err != nil:
			refuse(w, http.StatusBadRequest, err)
			return
		}
		lasts := time.Duration(seconds) * time.Second
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(lasts + patience)) // where there is a connection
		if req.ProtoMajor == 1 {
			w.Header().Set("Connection", "close") // the deadline is not for another request
		}
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		ctx, cancel := context.WithTimeout(req.Context(), lasts)
		defer cancel()
		_ = window.Write(ctx, flushing{w, control}) // the client may have gone
	})
}

func asked(req *http.Request, opts Options) (seconds int, _ Options, err error) {
	seconds = defaultSeconds
	if text := req.FormValue("seconds"); text != "" {
		if seconds, err = strconv.Atoi(text); err != nil || seconds < 1 || seconds > mostSeconds {
			return 0, opts, fmt.Errorf("seconds is %q; give a whole number from 1 to %d", text, mostSeconds)
		}
	}
	if text := req.FormValue("limit"); text != "" {
		if opts.Limit, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, opts, fmt.Errorf("limit is %q; give a number of bytes", text)
		}
	}
	opts.Redact = append(opts.Redact[:len(opts.Redact):len(opts.Redact)], req.Form["redact"]...)
	return seconds, opts, nil
}

// refuse answers with {"error": "…"}.
func refuse(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) // the client may have gone
}

// flushing sends at once what is written.
type flushing struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write implements io.Writer.
func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}
