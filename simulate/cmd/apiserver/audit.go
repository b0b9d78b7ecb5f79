// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/simulate"
)

// auditLine is one request. The order of the fields is that in the file.
type auditLine struct {
	Time time.Time `json:"time"` // of the end of the request
	User string    `json:"user"`
	Verb string    `json:"verb"`
	URI  string    `json:"uri"`
	Code int       `json:"code"` // 0: the connection broke instead
}

// audit writes a line for each request when it has ended. The zero value writes nothing. Safe
// for concurrent use.
type audit struct {
	mu struct {
		sync.Mutex
		to     io.WriteCloser // nil: nowhere
		failed error
	}
}

// openAudit appends to a file.
func openAudit(path string) (*audit, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write the audit log: %w; name a file that you can write to", err)
	}
	a := &audit{}
	a.mu.to = file
	return a, nil
}

func (a *audit) answered(r simulate.Request, code int) {
	line := auditLine{Time: time.Now().UTC(), User: r.User, Verb: r.Verb, URI: r.Path, Code: code}
	if r.Query != "" {
		line.URI += "?" + r.Query
	}
	text, _ := json.Marshal(line) // strings and numbers
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.to == nil || a.mu.failed != nil {
		return
	}
	_, a.mu.failed = a.mu.to.Write(append(text, '\n'))
}

// close returns why lines are missing.
func (a *audit) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.to == nil {
		return nil
	}
	err := a.mu.to.Close()
	a.mu.to = nil
	if a.mu.failed != nil {
		err = a.mu.failed
	}
	if err != nil {
		return fmt.Errorf("write the audit log: %w; later requests are missing in it", err)
	}
	return nil
}
