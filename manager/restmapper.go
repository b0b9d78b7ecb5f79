// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/codec"
)

// mapperPause is the least age of discovery results before they are refreshed because
// of a missing match.
const mapperPause = time.Second

// mapperAge is the age of discovery results at which they are refreshed: a definition may have
// got another scope, or a group another preferred version.
const mapperAge = 10 * time.Minute

// discoveryTimeout is for one request, unless the configuration has a timeout.
const discoveryTimeout = 30 * time.Second

// discoveryForms are what servers answer with all groups, versions and resources at once.
const discoveryForms = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// RESTMapper maps between kinds and resources, for code that needs a meta.RESTMapper.
// The manager itself does not. It requests discovery on first use, and again for a
// missing match, such as a new CRD, at most once a second, and when ten minutes have passed;
// such a call blocks. While discovery fails, what it knows is the answer. It is safe for
// concurrent use.
func (m *Manager) RESTMapper() meta.RESTMapper { return m.mapper }

// lazyMapper requests discovery when needed.
type lazyMapper struct {
	load   func() ([]discoveryv2.APIGroupDiscovery, error)
	single singleflight.Group

	mu struct {
		sync.Mutex
		mapper meta.RESTMapper // nil: not requested yet
		at     time.Time       // time of the last discovery
	}
}

func newLazyMapper(cfg *rest.Config) (*lazyMapper, error) {
	cfg = rest.CopyConfig(cfg)
	_, serializer, err := codec.For()
	if err != nil {
		return nil, err
	}
	cfg.NegotiatedSerializer = serializer
	cfg.Timeout = cmp.Or(cfg.Timeout, discoveryTimeout)
	client, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	return &lazyMapper{load: func() ([]discoveryv2.APIGroupDiscovery, error) { return discovered(client) }}, nil
}

func (l *lazyMapper) known() (meta.RESTMapper, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.mapper, l.mu.at
}

// keep uses what is known for another minute.
func (l *lazyMapper) keep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.at = time.Now().Add(time.Minute - mapperAge)
}

// refresh requests discovery, once for concurrent callers.
func (l *lazyMapper) refresh() (meta.RESTMapper, error) {
	mapper, err, _ := l.single.Do("", func() (any, error) {
		at := time.Now()
		groups, err := l.load()
		if err != nil {
			return nil, fmt.Errorf("discover the kinds that the server serves: %w", err)
		}
		mapper := mapperOf(groups)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.mu.mapper, l.mu.at = mapper, at
		return mapper, nil
	})
	if err != nil {
		return nil, err
	}
	return mapper.(meta.RESTMapper), nil
}

// asked returns the result of ask with the cached mapper, or else with a refreshed one.
func asked[T any](l *lazyMapper, ask func(meta.RESTMapper) (T, error)) (T, error) {
	old, at := l.known()
	var answer T
	var missing error
	if old != nil {
		answer, missing = ask(old)
		age := time.Since(at)
		if age < mapperPause || age < mapperAge && !meta.IsNoMatchError(missing) {
			return answer, missing
		}
	}
	mapper, err := l.refresh()
	switch {
	case err == nil:
		return ask(mapper)
	case old != nil && !meta.IsNoMatchError(missing):
		l.keep()
		return answer, missing
	}
	var none T
	return none, err
}

func (l *lazyMapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return asked(l, func(m meta.RESTMapper) (schema.GroupVersionKind, error) { return m.KindFor(r) })
}

func (l *lazyMapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return asked(l, func(m meta.RESTMapper) ([]schema.GroupVersionKind, error) { return m.KindsFor(r) })
}

func (l *lazyMapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return asked(l, func(m meta.RESTMapper) (schema.GroupVersionResource, error) { return m.ResourceFor(r) })
}

func (l *lazyMapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return asked(l, func(m meta.RESTMapper) ([]schema.GroupVersionResource, error) { return m.ResourcesFor(r) })
}

func (l *lazyMapper) RESTMapping(k schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return asked(l, func(m meta.RESTMapper) (*meta.RESTMapping, error) { return m.RESTMapping(k, versions...) })
}

func (l *lazyMapper) RESTMappings(k schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return asked(l, func(m meta.RESTMapper) ([]*meta.RESTMapping, error) { return m.RESTMappings(k, versions...) })
}

func (l *lazyMapper) ResourceSingularizer(resource string) (string, error) {
	return asked(l, func(m meta.RESTMapper) (string, error) { return m.ResourceSingularizer(resource) })
}

// discovered requests what the server serves: the core group, then all others.
func discovered(client rest.Interface) ([]discoveryv2.APIGroupDiscovery, error) {
	var groups []discoveryv2.APIGroupDiscovery
	for _, path := range []string{"/api", "/apis"} {
		text, err := client.Get().AbsPath(path).SetHeader("Accept", discoveryForms).Do(context.TODO()).Raw()
		if path == "/api" && apierrors.IsNotFound(err) {
			continue // a server without the core group, such as an aggregated one
		}
		if err != nil {
			return nil, fmt.Errorf("get %s: %w", path, err)
		}
		var list discoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("read the answer for %s: %w", path, err)
		}
		if list.Kind != "APIGroupDiscoveryList" {
			return nil, fmt.Errorf("the answer for %s is of kind %q: the server has no aggregated discovery, which Kubernetes has since 1.30", path, list.Kind)
		}
		groups = append(groups, list.Items...)
	}
	return groups, nil
}

// mapperOf returns a mapper in which the versions that the server prefers come first.
func mapperOf(groups []discoveryv2.APIGroupDiscovery) meta.RESTMapper {
	out := meta.PriorityRESTMapper{}
	var all meta.MultiRESTMapper
	for _, group := range groups {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			out.ResourcePriority = append(out.ResourcePriority, gv.WithResource(meta.AnyResource))
			out.KindPriority = append(out.KindPriority, gv.WithKind(meta.AnyKind))
			all = append(all, versionMapper(gv, version.Resources))
		}
		out.ResourcePriority = append(out.ResourcePriority, schema.GroupVersionResource{Group: group.Name, Version: meta.AnyVersion, Resource: meta.AnyResource})
		out.KindPriority = append(out.KindPriority, schema.GroupVersionKind{Group: group.Name, Version: meta.AnyVersion, Kind: meta.AnyKind})
	}
	out.Delegate = all
	return out
}

// versionMapper maps the resources of one version, and their lists.
func versionMapper(gv schema.GroupVersion, resources []discoveryv2.APIResourceDiscovery) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gv})
	for _, r := range resources {
		if r.ResponseKind == nil || r.ResponseKind.Kind == "" {
			continue
		}
		scope := meta.RESTScopeRoot
		if r.Scope == discoveryv2.ScopeNamespace {
			scope = meta.RESTScopeNamespace
		}
		kind := r.ResponseKind.Kind
		plural, singular := gv.WithResource(r.Resource), gv.WithResource(cmp.Or(r.SingularResource, strings.ToLower(kind)))
		mapper.AddSpecific(gv.WithKind(strings.ToLower(kind)), plural, singular, scope)
		mapper.AddSpecific(gv.WithKind(kind), plural, singular, scope)
		mapper.Add(gv.WithKind(kind+"List"), scope)
	}
	return mapper
}
