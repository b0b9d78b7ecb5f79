// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/store"
)

// slowFile is a journal's file whose writes wait until they are let through,
// and fail with fault.
type slowFile struct {
	through chan struct{}
	mu      struct {
		sync.Mutex
		bytes.Buffer
		fault error
	}
}

func (f *slowFile) Write(p []byte) (int, error) {
	<-f.through
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.fault != nil {
		n, _ := f.mu.Buffer.Write(p[:len(p)/2])
		return n, f.mu.fault
	}
	return f.mu.Buffer.Write(p)
}

func (f *slowFile) Sync() error  { return nil }
func (f *slowFile) Close() error { return nil }

func (f *slowFile) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.fault = err
}

func (f *slowFile) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.Buffer.String()
}

// underway is a request on its way: its answer when there is one.
type underway struct {
	*httptest.ResponseRecorder
	over chan struct{}
}

func (a underway) answered() bool {
	select {
	case <-a.over:
		return true
	default:
		return false
	}
}

// keptOf is the content of a journal that has what s has stored.
func keptOf(s *Server) *store.JournalContent {
	tx := s.store.Begin()
	defer tx.End()
	l := revisions.NewLog()
	l.Revision, l.Compacted = tx.Revision(), tx.Revision()
	for _, r := range s.kinds.Resources() {
		for _, obj := range tx.List(r) {
			l.Set(r, obj.Key(), obj)
		}
	}
	return &store.JournalContent{Log: l}
}

// keptServer runs test in a bubble with a server whose journal is file.
func keptServer(t *testing.T, test func(t *testing.T, s *Server, file *slowFile, ask func(method, path, body string) underway)) {
	synctest.Test(t, func(t *testing.T) {
		file := &slowFile{through: make(chan struct{}, 1000)}
		s := New(Options{Namespaces: []string{"ns"}})
		if err := s.keepIn(store.NewJournal("journal", file), keptOf(s)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		group.Go(func() { _ = s.store.Keep(ctx) })
		test(t, s, file, func(method, path, body string) underway {
			a := underway{httptest.NewRecorder(), make(chan struct{})}
			req := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
			group.Go(func() {
				defer close(a.over)
				s.ServeHTTP(a, req)
			})
			synctest.Wait()
			return a
		})
	})
}

const mapsPath = "/api/v1/namespaces/ns/configmaps"

// Nothing is told, to whomever, before it is in the file.
func TestKeep_FirstInTheFile_S23(t *testing.T) {
	keptServer(t, func(t *testing.T, s *Server, file *slowFile, ask func(method, path, body string) underway) {
		watching := ask("GET", mapsPath+"?watch=true", "")
		began := watching.Body.Len()
		create := ask("POST", mapsPath, `{"metadata":{"name":"a"}}`)
		get, list, cached := ask("GET", mapsPath+"/a", ""), ask("GET", mapsPath, ""), ask("GET", mapsPath+"?resourceVersion=0", "")
		if create.answered() || get.answered() || list.answered() {
			t.Errorf("answered before the file had it: create %v, get %v, list %v", create.answered(), get.answered(), list.answered())
		}
		if strings.Contains(cached.Body.String(), `"a"`) || watching.Body.Len() != began {
			t.Errorf("told before the file had it: list %s, watch %s", cached.Body, watching.Body)
		}
		// Those that come while the file is written are written together.
		for n := range 10 {
			ask("POST", mapsPath, fmt.Sprintf(`{"metadata":{"name":"b%d"}}`, n))
		}
		file.through <- struct{}{}
		synctest.Wait()
		if !create.answered() || create.Code != http.StatusCreated || strings.Count(file.text(), "\n") != 1 {
			t.Errorf("create: %d %s with %s in the file", create.Code, create.Body, file.text())
		}
		if get.answered() == list.answered() && get.answered() && watching.Body.Len() == began {
			t.Error("the watch was told nothing of what is in the file")
		}
		file.through <- struct{}{}
		synctest.Wait()
		if !list.answered() || strings.Count(file.text(), "\n") != 11 {
			t.Errorf("two writes: list answered %v; in the file are %s", list.answered(), file.text())
		}
	})
}

// What cannot be kept is not acknowledged, is told nobody, and is the last.
func TestKeep_FullDisk_S23(t *testing.T) {
	keptServer(t, func(t *testing.T, s *Server, file *slowFile, ask func(method, path, body string) underway) {
		file.through <- struct{}{}
		ask("POST", mapsPath, `{"metadata":{"name":"a"}}`)
		before := file.text()
		watching := ask("GET", mapsPath+"?watch=true&resourceVersion=2", "")
		file.fail(errors.New("no space left on device"))
		close(file.through)
		for name, a := range map[string]underway{
			"the write": ask("POST", mapsPath, `{"metadata":{"name":"b"}}`),
			"the next":  ask("POST", mapsPath, `{"metadata":{"name":"c"}}`),
			"a read":    ask("GET", mapsPath+"/b", ""),
		} {
			if a.Code != http.StatusInternalServerError || !strings.Contains(a.Body.String(), "no space left on device; what was acknowledged is in it") {
				t.Errorf("%s: %d %s, want 500 with the cause", name, a.Code, a.Body)
			}
		}
		if !watching.answered() || strings.Contains(watching.Body.String(), `"b"`) {
			t.Errorf("the watch is over: %v, and says %s", watching.answered(), watching.Body)
		}
		if whole := file.text()[:len(before)]; whole != before {
			t.Errorf("the file has %s where %s was", whole, before)
		}
	})
}

// A request that is given up does not wait for the file.
func TestKeep_GivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Namespaces: []string{"ns"}})
		if err := s.keepIn(store.NewJournal("journal", &slowFile{}), keptOf(s)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, "POST", mapsPath, strings.NewReader(`{"metadata":{"name":"a"}}`)))
		if answer.Code != http.StatusGatewayTimeout {
			t.Errorf("%d %s, want 504", answer.Code, answer.Body)
		}
	})
}
