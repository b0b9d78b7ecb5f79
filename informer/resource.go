// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// missMemory is how long "not served" is believed: it bounds how often many
// scopes that wait for one kind ask the server.
const missMemory = time.Second

// discoveryTimeout bounds one request for a group's resources.
const discoveryTimeout = 30 * time.Second

// mapping says where the server serves a kind.
type mapping struct {
	Resource   schema.GroupVersionResource
	Namespaced bool
}

// resolver finds the resource of a kind. It asks the server for one group and
// version at a time, so that a broken aggregated API harms only itself, and
// keeps what it learned until forget. Safe for concurrent use.
type resolver struct {
	server *apiServer
	mu     struct {
		sync.Mutex
		groups map[schema.GroupVersion]*discovered
	}
}

// discovered is what the server said of one group and version.
type discovered struct {
	asking chan struct{} // holds one token: who has it may ask the server
	mu     struct {
		sync.Mutex
		byKind map[string]mapping
		asked  time.Time
	}
}

// newResolver returns a resolver for the server of cfg. It sends nothing yet.
func newResolver(cfg *rest.Config, client *http.Client) (*resolver, error) {
	server, err := newAPIServer(cfg, client)
	if err != nil {
		return nil, err
	}
	r := &resolver{server: server}
	r.mu.groups = make(map[schema.GroupVersion]*discovered)
	return r, nil
}

// resolve is the mapping of kind, from memory or from the server. It blocks
// for the server's answer or until ctx ends. A *NotServedError means that the
// server has no such kind now.
func (r *resolver) resolve(ctx context.Context, kind schema.GroupVersionKind) (mapping, error) {
	g := r.group(kind.GroupVersion())
	if m, ok := g.lookup(kind.Kind); ok {
		return m, nil
	}
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-ctx.Done():
		return mapping{}, fmt.Errorf("find resource of kind %s: %w", kind, ctx.Err())
	}
	if m, ok := g.lookup(kind.Kind); ok {
		return m, nil
	}
	if g.askedWithin(missMemory) {
		return mapping{}, &NotServedError{Kind: kind, Err: fmt.Errorf("not in the list of resources of %s", kind.GroupVersion())}
	}
	byKind, err := r.server.resources(ctx, kind.GroupVersion())
	if err != nil && !apierrors.IsNotFound(err) {
		return mapping{}, fmt.Errorf("find resource of kind %s: %w", kind, err)
	}
	g.learn(byKind)
	if m, ok := g.lookup(kind.Kind); ok {
		return m, nil
	}
	if err == nil {
		err = fmt.Errorf("not in the list of resources of %s", kind.GroupVersion())
	}
	return mapping{}, &NotServedError{Kind: kind, Err: err}
}

// namespaced says what is known of kind without asking the server.
func (r *resolver) namespaced(kind schema.GroupVersionKind) (namespaced, known bool) {
	m, ok := r.group(kind.GroupVersion()).lookup(kind.Kind)
	return m.Namespaced, ok
}

// groupResource is the resource of kind for errors; before it is known, the
// kind in lower case stands in.
func (r *resolver) groupResource(kind schema.GroupVersionKind) schema.GroupResource {
	if m, ok := r.group(kind.GroupVersion()).lookup(kind.Kind); ok {
		return m.Resource.GroupResource()
	}
	return schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind)}
}

// forget has the next resolve of kind ask the server again: a request to its
// resource was answered 404.
func (r *resolver) forget(kind schema.GroupVersionKind) {
	g := r.group(kind.GroupVersion())
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.mu.byKind, kind.Kind)
}

func (r *resolver) group(gv schema.GroupVersion) *discovered {
	r.mu.Lock()
	defer r.mu.Unlock()
	g, ok := r.mu.groups[gv]
	if !ok {
		g = &discovered{asking: make(chan struct{}, 1)}
		r.mu.groups[gv] = g
	}
	return g
}

func (g *discovered) lookup(kind string) (mapping, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, ok := g.mu.byKind[kind]
	return m, ok
}

func (g *discovered) askedWithin(d time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.mu.asked.IsZero() && time.Since(g.mu.asked) < d
}

func (g *discovered) learn(byKind map[string]mapping) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.byKind, g.mu.asked = byKind, time.Now()
}

// resources are the listable kinds of one group and version.
func (s *apiServer) resources(ctx context.Context, gv schema.GroupVersion) (map[string]mapping, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	answer, err := s.get(ctx, request{verb: "discover", path: groupPath(gv), accept: contentJSON})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := readBody(answer.Body, maxFrame, 0)
	if err != nil {
		return nil, fmt.Errorf("read resources of %s: %w", gv, err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("read resources of %s: %w", gv, err)
	}
	byKind := make(map[string]mapping, len(list.APIResources))
	for _, res := range list.APIResources {
		// Subresources have the kinds of others.
		if strings.Contains(res.Name, "/") {
			continue
		}
		if _, twice := byKind[res.Kind]; twice {
			continue
		}
		byKind[res.Kind] = mapping{Resource: gv.WithResource(res.Name), Namespaced: res.Namespaced}
	}
	return byKind, nil
}

// groupPath is where the server serves gv.
func groupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}
