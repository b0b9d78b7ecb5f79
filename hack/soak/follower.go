// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/compact"
	"github.com/flyball-dev/flyball/kube"
)

// A view is the version of each object as seen by one observer.
type view map[kube.Key]string

// follower is an informer of any kind with two handlers.
type follower interface {
	fmt.Stringer
	// fresh returns the server's objects in its scopes.
	fresh(ctx context.Context, c *client.Client) (view, error)
	// equals compares want with what the cache and both handlers hold, and returns any
	// inconsistency that a handler observed.
	equals(want view) error
	// counted returns the number of events that both handlers received.
	counted() uint64
}

// following is a follower of T.
type following[T kube.Object] struct {
	name   string
	handle *informer.SharedInformer[T]
	covers func(T) bool // as its scopes, evaluated on this side
	mu     struct {
		sync.Mutex
		told   map[string]view // by handler
		wrong  string          // the first version that went back
		events uint64
	}
}

// followAll adds informers of several kinds to f, with scopes of each sort. ConfigMaps
// and Parts are held compressed, and of Deployments some fields.
func followAll(f *informer.SharedInformerFactory) ([]follower, error) {
	red := informer.Scope{LabelSelector: "color=red"}
	here := informer.Scope{Namespaces: namespaces[:2]}
	redHere := informer.Scope{Namespaces: here.Namespaces, LabelSelector: red.LabelSelector}
	some := informer.Scope{Fields: []string{"spec.replicas", "spec.template.spec.containers.image"}}
	how := compact.New(compact.Options{HotObjects: 8})
	if err := errors.Join(informer.For[*corev1.ConfigMap](f).Compact(how), informer.For[*part](f).Compact(how)); err != nil {
		return nil, err
	}
	var out []follower
	for _, one := range []func() (follower, error){
		func() (follower, error) {
			return follow(f, "all ConfigMaps", func(*corev1.ConfigMap) bool { return true })
		},
		func() (follower, error) {
			return follow(f, "red ConfigMaps", func(m *corev1.ConfigMap) bool { return isRed(m) }, red)
		},
		func() (follower, error) {
			return follow(f, "ConfigMaps of two namespaces", func(m *corev1.ConfigMap) bool { return isHere(m) }, here)
		},
		func() (follower, error) {
			return follow(f, "red Secrets and those of two namespaces", func(s *corev1.Secret) bool { return isRed(s) || isHere(s) }, red, here)
		},
		func() (follower, error) {
			return follow(f, "some fields of all Deployments", func(*appsv1.Deployment) bool { return true }, some)
		},
		func() (follower, error) { return follow(f, "all Parts", func(*part) bool { return true }) },
		func() (follower, error) {
			return follow(f, "red Parts of two namespaces", func(p *part) bool { return isRed(p) && isHere(p) }, redHere)
		},
	} {
		follower, err := one()
		if err != nil {
			return nil, err
		}
		out = append(out, follower)
	}
	return out, nil
}

func isRed(obj kube.Object) bool  { return obj.GetLabels()["color"] == "red" }
func isHere(obj kube.Object) bool { return slices.Contains(namespaces[:2], obj.GetNamespace()) }

// follow adds an informer with a handler of each sort.
func follow[T kube.Object](f *informer.SharedInformerFactory, name string, covers func(T) bool, scopes ...informer.Scope) (follower, error) {
	w := &following[T]{name: name, handle: informer.For[T](f, scopes...), covers: covers}
	w.mu.told = map[string]view{}
	for _, opts := range []informer.HandlerOptions{{Name: name + ", states"}, {Name: name + ", every event", EveryEvent: true}} {
		w.mu.told[opts.Name] = view{}
		if _, err := w.handle.AddHandler(func(e kube.Event[T]) { w.record(opts.Name, e) }, opts); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *following[T]) String() string { return w.name }

func (w *following[T]) record(handler string, e kube.Event[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.events++
	told := w.mu.told[handler]
	if e.Type == kube.Deleted {
		delete(told, e.Key)
		return
	}
	version := e.New.GetResourceVersion()
	if before := told[e.Key]; kube.ParseVersion(version) < kube.ParseVersion(before) && w.mu.wrong == "" {
		w.mu.wrong = fmt.Sprintf("%s received version %s of %s after %s", handler, version, e.Key, before)
	}
	told[e.Key] = version
}

func (w *following[T]) counted() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.events
}

func (w *following[T]) fresh(ctx context.Context, c *client.Client) (view, error) {
	out := view{}
	for obj, err := range client.List[T](ctx, c) {
		if err != nil {
			return nil, err
		}
		if w.covers(obj) {
			out[kube.KeyOf(obj)] = obj.GetResourceVersion()
		}
	}
	return out, nil
}

func (w *following[T]) equals(want view) error {
	cache := view{}
	for obj := range w.handle.Lister().All() {
		cache[kube.KeyOf(obj)] = obj.GetResourceVersion()
	}
	if err := differ("the cache", cache, want); err != nil {
		return fmt.Errorf("%w; it stands: %v", err, w.handle.Snapshot().Scopes)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for handler, told := range w.mu.told {
		if err := differ(handler, told, want); err != nil {
			return err
		}
	}
	if w.mu.wrong != "" {
		return fmt.Errorf("a version went back: %s", w.mu.wrong)
	}
	return nil
}

// differ describes where got differs from want, with one example of each sort.
func differ(who string, got, want view) error {
	for key, version := range want {
		switch has, ok := got[key]; {
		case !ok:
			return fmt.Errorf("%s lacks %s (it has %d objects, the server %d)", who, key, len(got), len(want))
		case has != version:
			return fmt.Errorf("%s has %s at version %s, the server at %s", who, key, has, version)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			return fmt.Errorf("%s still has %s, which the server has not (it has %d objects, the server %d)", who, key, len(got), len(want))
		}
	}
	return nil
}
