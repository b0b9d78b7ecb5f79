// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// mapperPause is the least age of discovery results before they are refreshed because
// of a missing match.
const mapperPause = time.Second

// RESTMapper maps between kinds and resources, for code that needs a meta.RESTMapper.
// The manager itself does not. It requests discovery on first use, and again for a
// missing match, such as a new CRD, at most once a second; such a call blocks. It is
// safe for concurrent use.
func (m *Manager) RESTMapper() meta.RESTMapper { return m.mapper }

// lazyMapper requests discovery when needed.
type lazyMapper struct {
	load   func() ([]*restmapper.APIGroupResources, error)
	single singleflight.Group

	mu struct {
		sync.Mutex
		mapper meta.RESTMapper // nil: not requested yet
		at     time.Time       // time of the last discovery
	}
}

func newLazyMapper(cfg *rest.Config) (*lazyMapper, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &lazyMapper{load: func() ([]*restmapper.APIGroupResources, error) { return restmapper.GetAPIGroupResources(client) }}, nil
}

func (l *lazyMapper) known() (meta.RESTMapper, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.mapper, l.mu.at
}

// refresh requests discovery, once for concurrent callers.
func (l *lazyMapper) refresh() (meta.RESTMapper, error) {
	mapper, err, _ := l.single.Do("", func() (any, error) {
		at := time.Now()
		groups, err := l.load()
		if err != nil {
			return nil, fmt.Errorf("discover the kinds that the server serves: %w", err)
		}
		mapper := restmapper.NewDiscoveryRESTMapper(groups)
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
	mapper, at := l.known()
	if mapper != nil {
		answer, err := ask(mapper)
		if !meta.IsNoMatchError(err) || time.Since(at) < mapperPause {
			return answer, err
		}
	}
	mapper, err := l.refresh()
	if err != nil {
		var none T
		return none, err
	}
	return ask(mapper)
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
