// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/flyball-dev/flyball/informer"
)

// defaultSyncPeriod is controller-runtime's.
const defaultSyncPeriod = 10 * time.Hour

// config is what the cache was asked for.
type config struct {
	cache.Options
	byKind map[schema.GroupVersionKind]cache.ByObject
}

// complete returns the configuration of the server, through the HTTP client of opts if there is one, and opts with
// controller-runtime's defaults.
func complete(cfg *rest.Config, opts cache.Options) (*rest.Config, config, error) {
	c := config{Options: opts, byKind: make(map[schema.GroupVersionKind]cache.ByObject, len(opts.ByObject))}
	if cfg == nil {
		return nil, c, fmt.Errorf("make the cache: the REST configuration is nil")
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = cmp.Or(cfg.UserAgent, rest.DefaultKubernetesUserAgent())
	c.Scheme = cmp.Or(c.Scheme, clientscheme.Scheme)
	if c.HTTPClient == nil {
		made, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return nil, c, fmt.Errorf("could not create HTTP client from config: %w", err)
		}
		c.HTTPClient = made
	}
	if c.Mapper == nil {
		mapper, err := apiutil.NewDynamicRESTMapper(cfg, c.HTTPClient)
		if err != nil {
			return nil, c, fmt.Errorf("could not create RESTMapper from config: %w", err)
		}
		c.Mapper = mapper
	}
	for obj, by := range opts.ByObject {
		kind, err := apiutil.GVKForObject(obj, c.Scheme)
		if err != nil {
			return nil, c, fmt.Errorf("failed to get GVK for type %T: %w", obj, err)
		}
		namespaced, err := apiutil.IsGVKNamespaced(kind, c.Mapper)
		if err != nil {
			return nil, c, fmt.Errorf("failed to determine if %T is namespaced: %w", obj, err)
		}
		if !namespaced && by.Namespaces != nil {
			return nil, c, fmt.Errorf("type %T is not namespaced, but its ByObject.Namespaces setting is not nil", obj)
		}
		c.byKind[kind] = by
	}
	cfg, err := through(c.HTTPClient, cfg)
	return cfg, c, err
}

// through returns a configuration of the same server whose requests go through with, which has the credentials.
func through(with *http.Client, cfg *rest.Config) (*rest.Config, error) {
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	transport := cmp.Or(with.Transport, http.DefaultTransport)
	return &rest.Config{
		Host: server.String(), APIPath: cfg.APIPath, ContentConfig: cfg.ContentConfig, UserAgent: cfg.UserAgent,
		Transport: transport, Timeout: cfg.Timeout,
		WarningHandler: cfg.WarningHandler, WarningHandlerWithContext: cfg.WarningHandlerWithContext,
	}, nil
}

// plan is how one kind is cached.
type plan struct {
	// namespaces have a configuration each; that of the empty name is for all others.
	namespaces map[string]cache.Config
	// chosen: a read of another namespace is an error.
	chosen bool
}

// planOf returns the plan of a kind, with the defaults in controller-runtime's order: the namespace of the kind, the
// kind, the default of the namespace, the defaults of all.
func (c config) planOf(kind schema.GroupVersionKind, namespaced bool) plan {
	all := cache.Config{
		LabelSelector: c.DefaultLabelSelector, FieldSelector: c.DefaultFieldSelector, Transform: c.DefaultTransform,
		UnsafeDisableDeepCopy: c.DefaultUnsafeDisableDeepCopy, EnableWatchBookmarks: c.DefaultEnableWatchBookmarks, SyncPeriod: c.SyncPeriod,
	}
	by := c.byKind[kind]
	own := cache.Config{
		LabelSelector: by.Label, FieldSelector: by.Field, Transform: by.Transform,
		UnsafeDisableDeepCopy: by.UnsafeDisableDeepCopy, EnableWatchBookmarks: by.EnableWatchBookmarks, SyncPeriod: by.SyncPeriod,
	}
	namespaces := by.Namespaces
	if namespaces == nil {
		namespaces = c.DefaultNamespaces
	}
	if !namespaced || len(namespaces) == 0 {
		return plan{namespaces: map[string]cache.Config{"": orElse(own, all)}}
	}
	p := plan{namespaces: make(map[string]cache.Config, len(namespaces)), chosen: true}
	for name, namespace := range namespaces {
		p.namespaces[name] = orElse(orElse(orElse(namespace, own), c.DefaultNamespaces[name]), all)
	}
	return p
}

// orElse returns c with what it does not set taken from other.
func orElse(c, other cache.Config) cache.Config {
	c.LabelSelector = cmp.Or(c.LabelSelector, other.LabelSelector)
	c.FieldSelector = cmp.Or(c.FieldSelector, other.FieldSelector)
	if c.Transform == nil {
		c.Transform = other.Transform
	}
	c.UnsafeDisableDeepCopy = cmp.Or(c.UnsafeDisableDeepCopy, other.UnsafeDisableDeepCopy)
	c.EnableWatchBookmarks = cmp.Or(c.EnableWatchBookmarks, other.EnableWatchBookmarks)
	c.SyncPeriod = cmp.Or(c.SyncPeriod, other.SyncPeriod)
	return c
}

// in returns the configuration of a namespace.
func (p plan) in(namespace string) cache.Config {
	if c, ok := p.namespaces[namespace]; ok {
		return c
	}
	return p.namespaces[""]
}

// covers reports whether a read of namespace is allowed.
func (p plan) covers(namespace string) bool {
	_, itself := p.namespaces[namespace]
	_, all := p.namespaces[""]
	return itself || all || !p.chosen
}

// scopes returns what is watched, deferred until all is set.
func (p plan) scopes() []informer.Scope {
	names := slices.Sorted(maps.Keys(p.namespaces))
	out := make([]informer.Scope, 0, len(names))
	for _, name := range names {
		c, s := p.namespaces[name], informer.Scope{Deferred: true}
		if c.LabelSelector != nil {
			s.LabelSelector = c.LabelSelector.String()
		}
		field := cmp.Or(c.FieldSelector, fields.Everything())
		if name == "" {
			name, _ = field.RequiresExactMatch("metadata.namespace") // fewer rights suffice
			for _, other := range names[1:] {
				without := fields.OneTermNotEqualSelector("metadata.namespace", other)
				if field.Empty() {
					field = without
				} else {
					field = fields.AndSelectors(field, without)
				}
			}
		}
		s.FieldSelector = field.String()
		if name != "" {
			s.Namespaces = []string{name}
		}
		out = append(out, s)
	}
	return out
}

// strip removes controller-runtime's TransformStripManagedFields from p, if the cache does the same,
// or all namespaces have it. It reports whether managedFields are not kept.
func (p *plan) strip(always bool) (stripped bool) {
	for _, c := range p.namespaces {
		if !always && !stripsManagedFields(c.Transform) {
			return false
		}
	}
	for name, c := range p.namespaces {
		if stripsManagedFields(c.Transform) {
			c.Transform = nil
			p.namespaces[name] = c
		}
	}
	return true
}

// stripsManagedFields reports whether f is of TransformStripManagedFields. Its closures may be
// compiled into its callers, so that they have nothing in common but their source.
func stripsManagedFields(f toolscache.TransformFunc) bool {
	if f == nil {
		return false
	}
	at := runtime.FuncForPC(reflect.ValueOf(f).Pointer())
	file, _ := at.FileLine(at.Entry())
	dir, _ := path.Split(filepath.ToSlash(file))
	_, inside, ok := strings.Cut(dir, "sigs.k8s.io/controller-runtime")
	return ok && strings.HasSuffix(inside, "/pkg/cache/") && strings.Contains(at.Name(), "TransformStripManagedFields.func")
}

// transform returns what modifies each object by the configuration of its namespace, or nil.
func (p plan) transform() toolscache.TransformFunc {
	if !p.transforms() {
		return nil
	}
	return func(in any) (any, error) {
		obj, ok := in.(client.Object)
		if !ok {
			return in, nil
		}
		if f := p.in(obj.GetNamespace()).Transform; f != nil {
			return f(in)
		}
		return in, nil
	}
}

func (p plan) transforms() bool {
	for _, c := range p.namespaces {
		if c.Transform != nil {
			return true
		}
	}
	return false
}

// resync returns how often handlers receive every object again: the shortest period of the namespaces. 0: never.
func (p plan) resync() time.Duration {
	var shortest time.Duration
	for _, c := range p.namespaces {
		if period := ptr.Deref(c.SyncPeriod, defaultSyncPeriod); period > 0 && (shortest == 0 || period < shortest) {
			shortest = period
		}
	}
	return shortest
}

// shares reports whether reads of namespace return the cached objects themselves.
func (p plan) shares(namespace string) bool {
	return ptr.Deref(p.in(namespace).UnsafeDisableDeepCopy, false)
}
