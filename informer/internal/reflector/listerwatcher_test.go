// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// recorder is a ListerWatcher of one object, that records its calls.
type recorder struct {
	calls []string
	err   error // of requests
}

func (r *recorder) add(call string) { r.calls = append(r.calls, call) }

func (r *recorder) List(context.Context, listwatch.ListOptions) (listwatch.Page[kube.Object], error) {
	r.add("list")
	return listwatch.Page[kube.Object]{Items: []listwatch.Item[kube.Object]{r.item()}}, r.err
}

func (r *recorder) Watch(context.Context, listwatch.WatchOptions) (listwatch.Stream[kube.Object], error) {
	r.add("watch")
	if r.err != nil {
		return nil, r.err
	}
	return &oneFrame{item: r.item()}, nil
}

func (r *recorder) item() listwatch.Item[kube.Object] {
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "a"}}
	item := listwatch.Item[kube.Object]{Key: kube.KeyOf(obj), Object: obj}
	item.Raw = []byte("{}")
	return item
}

// oneFrame is a stream of one added object, which then breaks.
type oneFrame struct {
	item  listwatch.Item[kube.Object]
	ended bool
}

func (s *oneFrame) Next() (listwatch.Frame[kube.Object], error) {
	if s.ended {
		return listwatch.Frame[kube.Object]{}, io.ErrUnexpectedEOF
	}
	s.ended = true
	return listwatch.Frame[kube.Object]{Type: listwatch.FrameAdded, Item: s.item}, nil
}

func (s *oneFrame) Close() error { return nil }

// probe adds the calls of a Probe.
type probe struct{ *recorder }

func (p probe) SetGoroutine() { p.add("probe") }
func (p probe) Begin()        { p.add("transform begins") }
func (p probe) End()          { p.add("transform ends") }

// feedOf returns the feed of namespace "prod" from r.
func feedOf(r *recorder) reflector.ListerWatcher {
	return reflector.ListerWatcher{
		From: r,
		Screen: reflector.Screen{
			Matcher:    reflector.Matcher{},
			Namespaced: func() (bool, bool) { r.add("screen"); return true, true },
		},
		Check:  func(context.Context) error { r.add("check"); return nil },
		Begin:  func() { r.add("begin") },
		Report: func(context.Context, error) { r.add("report") },
		Transform: func() reflector.Transform {
			return func(obj kube.Object) (kube.Object, error) { r.add("transform"); return obj, nil }
		},
		Probe: probe{r},
		Pack: func(i listwatch.Item[kube.Object]) listwatch.Item[kube.Object] {
			r.add("pack " + string(i.Raw))
			return i
		},
	}
}

func TestListerWatcher_EachStepRunsInItsOrder(t *testing.T) {
	processed := []string{"transform begins", "transform", "transform ends"}
	for _, c := range []struct {
		name string
		err  error
		do   func(reflector.ListerWatcher)
		want []string
	}{
		{"a list", nil, func(lw reflector.ListerWatcher) {
			page, _ := lw.List(t.Context(), listwatch.ListOptions{})
			if page.Items[0].Raw != nil {
				t.Error("an item of the page has its bytes, whose buffer is used again")
			}
		}, slices.Concat([]string{"probe", "begin", "check", "list", "screen"}, processed[:2], []string{"pack {}"}, processed[2:])},
		{"a further page", nil, func(lw reflector.ListerWatcher) {
			_, _ = lw.List(t.Context(), listwatch.ListOptions{Continue: "c"})
		}, slices.Concat([]string{"probe", "check", "list", "screen"}, processed[:2], []string{"pack {}"}, processed[2:])},
		{"a watch that breaks", nil, func(lw reflector.ListerWatcher) {
			s, _ := lw.Watch(t.Context(), listwatch.WatchOptions{})
			_, _ = s.Next()
			_, _ = s.Next()
		}, slices.Concat([]string{"check", "watch", "screen", "probe"}, processed[:2], []string{"pack {}"}, processed[2:], []string{"report"})},
		{"a watch that fails", errors.New("refused"), func(lw reflector.ListerWatcher) {
			_, _ = lw.Watch(t.Context(), listwatch.WatchOptions{})
		}, []string{"check", "watch", "report"}},
		{"a streaming list that pages will replace", errors.New("refused"), func(lw reflector.ListerWatcher) {
			_, _ = lw.Watch(t.Context(), listwatch.WatchOptions{SendInitialEvents: true})
		}, []string{"begin", "check", "watch"}},
	} {
		r := &recorder{err: c.err}
		c.do(feedOf(r))
		if !slices.Equal(r.calls, c.want) {
			t.Errorf("%s: the steps are %q, want %q", c.name, r.calls, c.want)
		}
	}
}

func TestListerWatcher_WhatFailsBeforeARequestSendsNone(t *testing.T) {
	r := &recorder{}
	lw := feedOf(r)
	lw.Check = func(context.Context) error { return errors.New("the scope has ended") }
	if _, err := lw.List(t.Context(), listwatch.ListOptions{}); err == nil {
		t.Error("a list has no error although its check failed")
	}
	if _, err := lw.Watch(t.Context(), listwatch.WatchOptions{}); err == nil {
		t.Error("a watch has no error although its check failed")
	}
	if slices.Contains(r.calls, "list") || slices.Contains(r.calls, "watch") {
		t.Errorf("requests were sent although the check failed: %q", r.calls)
	}
}

func TestListerWatcher_WithoutFunctionsItOnlyScreens(t *testing.T) {
	r := &recorder{}
	lw := reflector.ListerWatcher{From: r, Screen: reflector.Screen{Namespaced: func() (bool, bool) { return false, true }}}
	page, err := lw.List(t.Context(), listwatch.ListOptions{})
	if err != nil || page.Items[0].Anomaly != base.OtherNamespace {
		t.Errorf("an object with a namespace, of a cluster-scoped kind, is %v (%v), want %v", page.Items[0].Anomaly, err, base.OtherNamespace)
	}
}
