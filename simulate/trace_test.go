// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/simulate"
)

// faulty is a Tracer in whose place the server could be: it panics.
type faulty struct {
	changes
	value any
	stack string
	asked simulate.Request
}

func (f *faulty) Answering(simulate.Request) { panic("planted") }

func (f *faulty) Panicked(r simulate.Request, value any, stack []byte) {
	f.asked, f.value, f.stack = r, value, string(stack)
}

// A fault of the server itself is told with its stack, and breaks the connection; a
// connection that is broken on purpose is none.
func TestServer_PanicIsTold(t *testing.T) {
	f := &faulty{}
	s := simulate.New(simulate.Options{Tracer: f})
	post := func() (v any) {
		defer func() { v = recover() }()
		directly(s, http.MethodPost, "/api/v1/namespaces/default/configmaps", "application/json", `{"metadata":{"generateName":"a-"}}`)
		return nil
	}
	if v := post(); v != "planted" || f.value != "planted" || f.asked.Verb != "create" || !strings.Contains(f.stack, "Answering") {
		t.Errorf("the panic went on as %v and was told as %v at %+v with\n%s\nwant planted, where it was", v, f.value, f.asked, f.stack)
	}

	told := &broken{}
	s = simulate.New(simulate.Options{Tracer: told})
	s.LoseResponse(1)
	if v := post(); v != http.ErrAbortHandler || told.panicked {
		t.Errorf("an answer that is lost on purpose: %v, told: %v, want ErrAbortHandler and nothing told", v, told.panicked)
	}
}

// broken notes whether it is told of a panic.
type broken struct {
	changes
	panicked bool
}

func (b *broken) Panicked(simulate.Request, any, []byte) { b.panicked = true }

// picky is a Tracer that has requests for one ConfigMap refused, each with another code.
type picky struct {
	changes
	server *simulate.Server
	codes  []int
	users  []string // of the requests at their end
}

func (p *picky) Asked(r simulate.Request) {
	if r.Key.Name == "refused" {
		p.server.RefuseRequest(r, p.codes[0], 3)
		p.codes = p.codes[1:]
	}
}

func (p *picky) Answered(r simulate.Request, code int) { p.users = append(p.users, r.User) }

// RefuseRequest refuses that request alone, and the Tracer learns at its end whose it was.
func TestFaults_ARequestIsRefusedAlone(t *testing.T) {
	codes := []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError}
	p := &picky{codes: codes}
	p.server = simulate.New(simulate.Options{Tracer: p, User: "jane"})
	path := "/api/v1/namespaces/default/configmaps/"
	for _, code := range codes {
		if got := directly(p.server, http.MethodGet, path+"refused", "", ""); got.Code != code || (got.Header().Get("Retry-After") == "3") != (code != http.StatusInternalServerError) {
			t.Errorf("got %d, Retry-After %q, want %d, with Retry-After unless it is 500", got.Code, got.Header().Get("Retry-After"), code)
		}
		if got := directly(p.server, http.MethodGet, path+"other", "", ""); got.Code != http.StatusNotFound {
			t.Errorf("the next request is answered with %d, want 404", got.Code)
		}
	}
	if want := []string{"", "jane", "", "jane", "", "jane"}; !slices.Equal(p.users, want) {
		t.Errorf("the users are %q, want %q: those refused before are not known", p.users, want)
	}
}
