// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
)

// What is too large is sent again, most likely: it is asked for slowly, by
// lists too, and the state says what is wrong.
func TestReflector_OversizedFrameIsAskedForSlowly_A15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tooLarge := fmt.Errorf("read watch: %w", &TooLargeError{Limit: maxFrame})
		ab := pageOf("10", "", item("a", "1"))
		lw := &script{steps: []act{ab, frames(tooLarge), frames(tooLarge)}}
		for range 1000 {
			lw.steps = append(lw.steps, ab, frames(tooLarge))
		}
		_, state := reflectFor(t, time.Hour, lw, Options{PagedLists: true})
		if n := strings.Count(lw.requests(), "list"); n < 50 || n > 130 {
			t.Errorf("%d lists in an hour, want about one in 30 s to 60 s", n)
		}
		if n := len(lw.asked); n > 260 {
			t.Errorf("%d requests in an hour, want a watch for each list", n)
		}
		for _, want := range []string{"134217728 bytes", "find what sends it"} {
			if !strings.Contains(state.Reason, want) {
				t.Errorf("got %s; want to read %q", state, want)
			}
		}
		if state.Relists[relistOversized] == 0 || state.NextTry.IsZero() {
			t.Errorf("got %+v; want the relists counted, and the next try", state)
		}
	})
}

func TestReflector_OversizedPageIsAskedForInSmallerOnes_A15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &script{steps: []act{{err: &TooLargeError{Limit: maxFrame}}, {err: &TooLargeError{Limit: maxFrame}}, pageOf("10", "", item("a", "1")), frames(nil)}}
		limits := &limited{script: lw}
		m, _ := reflectFor(t, time.Minute, limits, Options{PagedLists: true, PageSize: 400})
		if got := fmt.Sprint(limits.limits); got != "[400 200 100]" || m.held() != "a@1" {
			t.Errorf("got pages of %s objects and %q, want 400, 200, 100 and a", got, m.held())
		}
	})
}

// limited writes down the page sizes that are asked for.
type limited struct {
	*script
	limits []int64
}

func (l *limited) List(ctx context.Context, o ListOptions) (Page[*corev1.ConfigMap], error) {
	l.limits = append(l.limits, o.Limit)
	return l.script.List(ctx, o)
}

func TestWarnings_AreSaidOnceAndBounded(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	ctx := logr.NewContext(t.Context(), log)
	var w warnings
	header := http.Header{"Warning": {`299 - "v1beta1 is deprecated"`, `199 proxy "of no interest"`, `gibberish`}}
	w.tell(ctx, header)
	w.tell(ctx, header)
	if len(lines) != 1 || !strings.Contains(lines[0], "v1beta1 is deprecated") {
		t.Errorf("got %q, want the server's warning once", lines)
	}
	for n := range 10 * mostWarnings {
		w.tell(ctx, http.Header{"Warning": {fmt.Sprintf(`299 - "warning %d"`, n)}})
	}
	if len(lines) > mostWarnings {
		t.Errorf("%d lines, want %d at most: a server can make up any number", len(lines), mostWarnings)
	}
}
