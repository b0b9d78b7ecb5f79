// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

// play is a server with actors, asked without a network, in one bubble.
type play struct {
	*simulate.Server
	t     *testing.T
	group sync.WaitGroup
}

// acting runs test in a bubble while actors work. The server has the namespaces
// ns and other.
func acting(t *testing.T, opts simulate.Options, actors simulate.Actors, test func(p *play)) {
	t.Helper()
	opts.Namespaces = []string{"ns", "other"}
	synctest.Test(t, func(t *testing.T) {
		p := &play{Server: simulate.New(opts), t: t}
		ctx, cancel := context.WithCancel(t.Context())
		defer p.group.Wait()
		defer cancel()
		p.run(ctx, actors)
		test(p)
	})
}

// run has actors work until ctx ends.
func (p *play) run(ctx context.Context, actors simulate.Actors) {
	p.group.Go(func() {
		if err := p.RunActors(ctx, actors); err != nil {
			p.t.Errorf("run actors: %v", err)
		}
	})
}

// ask sends one request, and returns the status and the body of the answer.
func (p *play) ask(line, body string, headers ...string) (int, map[string]any) {
	p.t.Helper()
	f := strings.Fields(line)
	r := httptest.NewRequestWithContext(p.t.Context(), f[0], f[1], strings.NewReader(body))
	if len(f) > 2 {
		r.Header.Set("Content-Type", mediaTypes[f[2]])
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	var answer map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil && w.Code < 400 {
		p.t.Errorf("%s: the answer is no JSON: %v", line, err)
	}
	return w.Code, answer
}

// must sends a request that has to be taken.
func (p *play) must(line, body string) map[string]any {
	p.t.Helper()
	code, answer := p.ask(line, body)
	if code >= 300 {
		p.t.Fatalf("%s: got %d %v, want it taken", line, code, answer["message"])
	}
	return answer
}

// there is what of a kind is there, but for the cluster's own namespaces: "a b".
func (p *play) there(r schema.GroupResource) string {
	var names []string
	for _, obj := range p.Objects(r) {
		home := obj.GetNamespace()
		if r == namespaces {
			home = obj.GetName()
		}
		if home != "default" && !strings.HasPrefix(home, "kube-") {
			names = append(names, obj.GetName())
		}
	}
	return strings.Join(names, " ")
}

// has fails the test when something else than want of a kind is there.
func (p *play) has(r schema.GroupResource, want, meaning string) {
	p.t.Helper()
	if got := p.there(r); got != want {
		p.t.Errorf("%s: got %q, want %q: %s", r.Resource, got, want, meaning)
	}
}

// at is a field of an object.
func (p *play) at(path string, fields ...string) any {
	p.t.Helper()
	return in(p.must("GET "+path, ""), fields...)
}

func TestServer_ActorsOfNoneDoNothing_S21(t *testing.T) {
	acting(t, simulate.Options{}, simulate.Actors{}, func(p *play) {
		p.must("POST /api/v1/namespaces", `{"metadata":{"name":"a"}}`)
		p.must("DELETE /api/v1/namespaces/a", "")
		fixture.Pass(time.Minute)
		p.has(schema.GroupResource{Resource: "namespaces"}, "a ns other", "nobody was asked to empty namespaces")
	})
	if err := simulate.New(simulate.Options{}).RunActors(t.Context(), simulate.Actors{Delay: -1}); err == nil {
		t.Error("a negative delay is taken; want an error that says so")
	}
}

// typed is a stored object in its Go type.
func typed[T any](t *testing.T, obj metav1.Object) (out T) {
	t.Helper()
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("got a %T", obj)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
