// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"context"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/flyball-dev/flyball/internal/textlog"
)

// mostWarnings bounds how many different texts are logged.
const mostWarnings = 100

// warnings holds a server's warnings, such as of a deprecated version of a
// kind. The zero value is ready to use. Safe for concurrent use.
type warnings struct {
	mu struct {
		sync.Mutex
		said map[string]bool
	}
}

// log logs the new warnings of an answer.
func (w *warnings) log(ctx context.Context, header http.Header) {
	headers := header.Values("Warning")
	if len(headers) == 0 {
		return
	}
	// The API server uses code 299; other codes are from caches and proxies.
	parsed, _ := utilnet.ParseWarningHeaders(headers)
	for _, warning := range parsed {
		if warning.Code == 299 && warning.Text != "" && w.isNew(warning.Text) {
			textlog.Warn(textlog.Throttled(logr.FromContextOrDiscard(ctx)), nil, "The server warns: "+shorten([]byte(warning.Text)))
		}
	}
}

func (w *warnings) isNew(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.said[text] || len(w.mu.said) >= mostWarnings {
		return false
	}
	if w.mu.said == nil {
		w.mu.said = make(map[string]bool)
	}
	w.mu.said[text] = true
	return true
}
