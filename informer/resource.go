// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		served
		once  map[string]string // kinds by resource, of all that was ever served
		asked time.Time
	}
}

// served are the listable resources of one group and version.
type served struct {
	byKind     map[string]mapping
	byResource map[string]resourceKind
}

type resourceKind struct {
	kind       string
	namespaced bool
}

// newResolver returns a resolver for server. It sends nothing yet.
func newResolver(server *apiServer) *resolver {
	r := &resolver{server: server}
	r.mu.groups = make(map[schema.GroupVersion]*discovered)
	return r
}

// target is what a request is about: a kind, or a resource whose kind only
// the server knows.
type target struct {
	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource // empty: by kind
}

func (t target) groupVersion() schema.GroupVersion {
	if t.resource.Resource != "" {
		return t.resource.GroupVersion()
	}
	return t.kind.GroupVersion()
}

// named is the kind for errors; of a resource, the resource stands in.
func (t target) named() schema.GroupVersionKind {
	if t.resource.Resource != "" {
		return t.resource.GroupVersion().WithKind(t.resource.Resource)
	}
	return t.kind
}

// resolve is where the server serves t, and the kind, from memory or from the
// server. It blocks for the server's answer or until ctx ends. A
// *NotServedError means that the server has no such kind now.
func (r *resolver) resolve(ctx context.Context, t target) (schema.GroupVersionKind, mapping, error) {
	var none schema.GroupVersionKind
	gv := t.groupVersion()
	g := r.group(gv)
	if kind, m, ok := g.lookup(t); ok {
		return kind, m, nil
	}
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-ctx.Done():
		return none, mapping{}, fmt.Errorf("find resource of kind %s: %w", t.named(), ctx.Err())
	}
	if kind, m, ok := g.lookup(t); ok {
		return kind, m, nil
	}
	if g.askedWithin(missMemory) {
		return none, mapping{}, &NotServedError{Kind: t.named(), Err: fmt.Errorf("not in the list of resources of %s", gv)}
	}
	served, err := r.server.resources(ctx, gv)
	if err != nil && !apierrors.IsNotFound(err) {
		return none, mapping{}, fmt.Errorf("find resource of kind %s: %w", t.named(), err)
	}
	g.learn(served)
	if kind, m, ok := g.lookup(t); ok {
		return kind, m, nil
	}
	if err == nil {
		err = fmt.Errorf("not in the list of resources of %s", gv)
	}
	return none, mapping{}, &NotServedError{Kind: t.named(), Err: err}
}

// namespaced says what is known of t without asking the server.
func (r *resolver) namespaced(t target) (namespaced, known bool) {
	_, m, ok := r.group(t.groupVersion()).lookup(t)
	return m.Namespaced, ok
}

// groupResource is the resource of t for errors; before it is known, the kind
// in lower case stands in.
func (r *resolver) groupResource(t target) schema.GroupResource {
	if t.resource.Resource != "" {
		return t.resource.GroupResource()
	}
	if _, m, ok := r.group(t.kind.GroupVersion()).lookup(t); ok {
		return m.Resource.GroupResource()
	}
	return schema.GroupResource{Group: t.kind.Group, Resource: strings.ToLower(t.kind.Kind)}
}

// kindOf is the kind of t, also after the server has ceased to serve it.
func (r *resolver) kindOf(t target) (schema.GroupVersionKind, bool) {
	if t.resource.Resource == "" {
		return t.kind, true
	}
	g := r.group(t.groupVersion())
	g.mu.Lock()
	defer g.mu.Unlock()
	kind, ok := g.mu.once[t.resource.Resource]
	return t.groupVersion().WithKind(kind), ok
}

// knownKind is kindOf for a resource.
func (r *resolver) knownKind(resource schema.GroupVersionResource) (schema.GroupVersionKind, bool) {
	return r.kindOf(target{resource: resource})
}

// forget has the next resolve of t ask the server again: a request to its
// resource was answered 404.
func (r *resolver) forget(t target) {
	g := r.group(t.groupVersion())
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.resource.Resource != "" {
		delete(g.mu.byResource, t.resource.Resource)
		return
	}
	delete(g.mu.byKind, t.kind.Kind)
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

func (g *discovered) lookup(t target) (schema.GroupVersionKind, mapping, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.resource.Resource != "" {
		k, ok := g.mu.byResource[t.resource.Resource]
		return t.groupVersion().WithKind(k.kind), mapping{Resource: t.resource, Namespaced: k.namespaced}, ok
	}
	m, ok := g.mu.byKind[t.kind.Kind]
	return t.kind, m, ok
}

func (g *discovered) askedWithin(d time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.mu.asked.IsZero() && time.Since(g.mu.asked) < d
}

func (g *discovered) learn(s served) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.served, g.mu.asked = s, time.Now()
	if g.mu.once == nil {
		g.mu.once = make(map[string]string)
	}
	for resource, k := range s.byResource {
		g.mu.once[resource] = k.kind
	}
}

// resources asks what is served of one group and version.
func (s *apiServer) resources(ctx context.Context, gv schema.GroupVersion) (served, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	var list metav1.APIResourceList
	if err := s.getJSON(ctx, request{verb: verbDiscover, path: groupPath(gv)}, "resources of "+gv.String(), &list); err != nil {
		return served{}, err
	}
	out := served{byKind: make(map[string]mapping), byResource: make(map[string]resourceKind)}
	for _, res := range list.APIResources {
		// Subresources have the kinds of others.
		if strings.Contains(res.Name, "/") {
			continue
		}
		out.byResource[res.Name] = resourceKind{res.Kind, res.Namespaced}
		if _, twice := out.byKind[res.Kind]; twice {
			continue
		}
		out.byKind[res.Kind] = mapping{Resource: gv.WithResource(res.Name), Namespaced: res.Namespaced}
	}
	return out, nil
}

// getJSON sends r and reads the small JSON document that answers it, which is
// called name in errors of reading.
func (s *apiServer) getJSON(ctx context.Context, r request, name string, into any) error {
	r.accept = contentJSON
	answer, err := s.get(ctx, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := readBody(answer.Body, maxFrame, 0)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// groupPath is where the server serves gv.
func groupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}
