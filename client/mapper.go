// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/kube"
)

// resource describes how the server serves a kind.
type resource struct {
	name         string // plural, as in the path
	namespaced   bool
	subresources []string
	found        time.Time // when discovery said so
}

// mapper maps kinds to resources. It discovers one group version at a time, on first
// use, so that an aggregated API that is down affects only its own kinds. It caches
// kinds that are served, not those that are missing.
type mapper struct {
	discover func(context.Context, schema.GroupVersion) ([]metav1.APIResource, error)

	mu struct {
		sync.Mutex
		known map[schema.GroupVersionKind]resource
	}
}

func newMapper(discover func(context.Context, schema.GroupVersion) ([]metav1.APIResource, error)) *mapper {
	m := &mapper{discover: discover}
	m.mu.known = map[schema.GroupVersionKind]resource{}
	return m
}

func (m *mapper) find(ctx context.Context, kind schema.GroupVersionKind) (resource, error) {
	if found, ok := m.known(kind); ok {
		return found, nil
	}
	return m.ask(ctx, kind)
}

func (m *mapper) known(kind schema.GroupVersionKind) (r resource, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok = m.mu.known[kind]
	return r, ok
}

// ask discovers the group version of a kind. What was known of it stays if that fails.
func (m *mapper) ask(ctx context.Context, kind schema.GroupVersionKind) (resource, error) {
	gv := kind.GroupVersion()
	served, err := m.discover(ctx, gv)
	if err != nil {
		return resource{}, fmt.Errorf("find resource of kind %s: %w", kind, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLocked(gv)
	maps.Copy(m.mu.known, resources(gv, served))
	found, ok := m.mu.known[kind]
	if !ok {
		return resource{}, notServed(kind)
	}
	return found, nil
}

// resources indexes the discovery of a group version by kind. Discovery lists
// subresources beside the resources, such as deployments/scale, with kinds of their
// own.
func resources(gv schema.GroupVersion, served []metav1.APIResource) map[schema.GroupVersionKind]resource {
	subresources := map[string][]string{}
	for _, r := range served {
		if of, name, is := strings.Cut(r.Name, "/"); is {
			subresources[of] = append(subresources[of], name)
		}
	}
	found := map[schema.GroupVersionKind]resource{}
	for _, r := range served {
		if !strings.Contains(r.Name, "/") {
			found[gv.WithKind(r.Kind)] = resource{name: r.Name, namespaced: r.Namespaced, subresources: subresources[r.Name], found: time.Now()}
		}
	}
	return found
}

// forget drops the cached discovery of a group version, after the server has answered
// that a resource in it does not exist.
func (m *mapper) forget(gv schema.GroupVersion) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLocked(gv)
}

func (m *mapper) forgetLocked(gv schema.GroupVersion) {
	maps.DeleteFunc(m.mu.known, func(kind schema.GroupVersionKind, _ resource) bool { return kind.GroupVersion() == gv })
}

func (m *mapper) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.mu.known)
}

// notServed returns an error that wraps no StatusError: a missing kind must not look
// like a missing object, which callers ignore.
func notServed(kind schema.GroupVersionKind) error {
	return &kube.NotServedError{
		Kind: kind,
		Err:  &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}},
	}
}

// discover returns the resources of a group version, none if it does not exist.
func (c *Client) discover(ctx context.Context, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	rc, err := c.restFor(gv)
	if err != nil {
		return nil, err
	}
	at := &call{verb: verbGet, kind: gv.WithKind("APIResourceList")}
	res, err := c.result(ctx, at, rc.Get().SetHeader("Accept", runtime.ContentTypeJSON))
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	raw, err := res.Raw()
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &list); err != nil {
		return nil, fmt.Errorf("read the resources of %s: %w", gv, err)
	}
	return list.APIResources, nil
}
