// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/pacing"
	"github.com/flyball-dev/flyball/kube"
)

// MissMemory is how long "not served" is cached, to bound the requests of many
// scopes that wait for one kind.
const MissMemory = time.Second

// DiscoveryTimeout limits one request for a group's resources.
const DiscoveryTimeout = 30 * time.Second

// mapping is where the server serves a kind.
type mapping struct {
	Resource   schema.GroupVersionResource
	Namespaced bool
	unlisted   bool // it has no verb list
}

// Resolver finds the resource of a kind. It queries one group and version at a
// time, so that a broken aggregated API affects only itself, and caches the
// answer until forget. Safe for concurrent use.
type Resolver struct {
	Server *Server
	mu     struct {
		sync.Mutex
		groups map[schema.GroupVersion]*discovered
	}
}

// discovered is what the server reported for one group and version.
type discovered struct {
	asking chan struct{} // has one token: its holder may ask the server
	mu     struct {
		sync.Mutex
		served
		once  map[string]string // kinds of all resources ever served
		asked time.Time
	}
}

// served has the listable resources of one group and version.
type served struct {
	byKind     map[string]mapping
	byResource map[string]resourceKind
}

type resourceKind struct {
	kind       string
	namespaced bool
	unlisted   bool
}

// NewResolver returns a resolver for server. It sends nothing.
func NewResolver(server *Server) *Resolver {
	r := &Resolver{Server: server}
	r.mu.groups = make(map[schema.GroupVersion]*discovered)
	return r
}

// Target is the object of a request: a kind, or a resource whose kind only the
// server knows.
type Target struct {
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource // empty: use Kind
}

func (t Target) groupVersion() schema.GroupVersion {
	if t.Resource.Resource != "" {
		return t.Resource.GroupVersion()
	}
	return t.Kind.GroupVersion()
}

// named returns the kind for errors, or the resource in its place.
func (t Target) named() schema.GroupVersionKind {
	if t.Resource.Resource != "" {
		return t.Resource.GroupVersion().WithKind(t.Resource.Resource)
	}
	return t.Kind
}

// Resolve returns the kind and resource of t, cached or from the server. It
// blocks until the server answers or ctx ends. A *NotServedError means that the
// server does not serve the kind now.
func (r *Resolver) Resolve(ctx context.Context, t Target) (schema.GroupVersionKind, mapping, error) {
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
	if g.askedWithin(MissMemory) {
		return none, mapping{}, &kube.NotServedError{Kind: t.named(), Err: fmt.Errorf("not in the list of resources of %s", gv)}
	}
	served, err := r.Server.resources(ctx, gv)
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
	return none, mapping{}, &kube.NotServedError{Kind: t.named(), Err: err}
}

// Namespaced returns what is known about t without asking the server.
func (r *Resolver) Namespaced(t Target) (namespaced, known bool) {
	_, m, ok := r.group(t.groupVersion()).lookup(t)
	return m.Namespaced, ok
}

// GroupResource returns the resource of t for errors, or the lower-case kind
// until the resource is known.
func (r *Resolver) GroupResource(t Target) schema.GroupResource {
	if t.Resource.Resource != "" {
		return t.Resource.GroupResource()
	}
	if _, m, ok := r.group(t.Kind.GroupVersion()).lookup(t); ok {
		return m.Resource.GroupResource()
	}
	return schema.GroupResource{Group: t.Kind.Group, Resource: strings.ToLower(t.Kind.Kind)}
}

// KindOf returns the kind of t, even after the server stopped serving it.
func (r *Resolver) KindOf(t Target) (schema.GroupVersionKind, bool) {
	if t.Resource.Resource == "" {
		return t.Kind, true
	}
	g := r.group(t.groupVersion())
	g.mu.Lock()
	defer g.mu.Unlock()
	kind, ok := g.mu.once[t.Resource.Resource]
	return t.groupVersion().WithKind(kind), ok
}

// KnownKind is KindOf for a resource.
func (r *Resolver) KnownKind(resource schema.GroupVersionResource) (schema.GroupVersionKind, bool) {
	return r.KindOf(Target{Resource: resource})
}

// forget makes the next Resolve of t ask the server again, after a request to
// its resource was answered with 404.
func (r *Resolver) forget(t Target) {
	g := r.group(t.groupVersion())
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.Resource.Resource != "" {
		delete(g.mu.byResource, t.Resource.Resource)
		return
	}
	delete(g.mu.byKind, t.Kind.Kind)
}

func (r *Resolver) group(gv schema.GroupVersion) *discovered {
	r.mu.Lock()
	defer r.mu.Unlock()
	g, ok := r.mu.groups[gv]
	if !ok {
		g = &discovered{asking: make(chan struct{}, 1)}
		r.mu.groups[gv] = g
	}
	return g
}

func (g *discovered) lookup(t Target) (schema.GroupVersionKind, mapping, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.Resource.Resource != "" {
		k, ok := g.mu.byResource[t.Resource.Resource]
		return t.groupVersion().WithKind(k.kind), mapping{Resource: t.Resource, Namespaced: k.namespaced, unlisted: k.unlisted}, ok
	}
	m, ok := g.mu.byKind[t.Kind.Kind]
	return t.Kind, m, ok
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

func (s *Server) resources(ctx context.Context, gv schema.GroupVersion) (served, error) {
	ctx, cancel := context.WithTimeout(ctx, DiscoveryTimeout)
	defer cancel()
	var list metav1.APIResourceList
	if err := s.GetJSON(ctx, Request{Verb: pacing.VerbDiscover, Path: GroupPath(gv)}, "resources of "+gv.String(), &list); err != nil {
		return served{}, err
	}
	out := served{byKind: make(map[string]mapping), byResource: make(map[string]resourceKind)}
	for _, res := range list.APIResources {
		// Subresources have the kinds of other resources.
		if strings.Contains(res.Name, "/") {
			continue
		}
		unlisted := len(res.Verbs) > 0 && !slices.Contains(res.Verbs, "list")
		out.byResource[res.Name] = resourceKind{res.Kind, res.Namespaced, unlisted}
		if _, twice := out.byKind[res.Kind]; twice {
			continue
		}
		out.byKind[res.Kind] = mapping{Resource: gv.WithResource(res.Name), Namespaced: res.Namespaced, unlisted: unlisted}
	}
	return out, nil
}

// GetJSON sends r and decodes the small JSON document in the answer. Errors
// call it name.
func (s *Server) GetJSON(ctx context.Context, r Request, name string, into any) error {
	r.accept = ContentJSON
	answer, err := s.get(ctx, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := encoding.ReadBody(answer.Body, encoding.MaxFrame, 0)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// GroupPath returns the path where the server serves gv.
func GroupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}
