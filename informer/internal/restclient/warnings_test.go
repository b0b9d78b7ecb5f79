// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

func TestWarnings_AreSaidOnceAndBounded(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	ctx := logr.NewContext(t.Context(), log)
	var w warnings
	header := http.Header{"Warning": {`299 - "v1beta1 is deprecated"`, `199 proxy "of no interest"`, `gibberish`}}
	w.log(ctx, header)
	w.log(ctx, header)
	if len(lines) != 1 || !strings.Contains(lines[0], "v1beta1 is deprecated") {
		t.Errorf("got %q, want the server's warning once", lines)
	}
	for n := range 10 * mostWarnings {
		w.log(ctx, http.Header{"Warning": {fmt.Sprintf(`299 - "warning %d"`, n)}})
	}
	if len(lines) > mostWarnings {
		t.Errorf("%d lines, want %d at most: a server can make up any number", len(lines), mostWarnings)
	}
}
