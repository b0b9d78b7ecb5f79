// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/pacing"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// listerWatcher lists and watches ConfigMaps on s.
func listerWatcher(t *testing.T, s *fixture.Server, scope listwatch.Scope) listwatch.ListerWatcher[kube.Object] {
	t.Helper()
	transport := &http.Transport{DialContext: s.Dial}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := &rest.Config{Host: "http://memory", Transport: transport}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server, err := restclient.NewServer(cfg, client, pacing.DefaultConcurrentLists)
	if err != nil {
		t.Fatal(err)
	}
	lw, err := restclient.NewListerWatcher(reflect.TypeFor[*corev1.ConfigMap](), restclient.NewResolver(server), restclient.Target{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap")}, scope, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lw
}

func TestREST_Stories(t *testing.T) {
	paged := Options{PagedLists: true}
	a, b := fixture.ConfigMap("a", "1"), fixture.ConfigMap("b", "2")
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no"))
	for _, c := range []struct {
		name    string
		opts    Options
		dead    int // connections refused at first
		answers []fixture.Answer
		asked   string
		held    string
		state   state.State
		reason  string
	}{
		{"pages", paged, 0, []fixture.Answer{fixture.Page(t, "10", "p2", a), fixture.Page(t, "10", "", b), fixture.Watch(fixture.Stay, fixture.Wire(t, listwatch.FrameModified, fixture.ConfigMap("a", "11")))},
			"list, list p2, watch 10", "a@11 b@2", state.Live, ""},
		{"streaming list", Options{}, 0, []fixture.Answer{fixture.Watch(fixture.Stay, fixture.Wire(t, listwatch.FrameAdded, a), fixture.Wire(t, listwatch.FrameAdded, b), fixture.WireBookmark(t, "10", true), fixture.Wire(t, listwatch.FrameDeleted, fixture.ConfigMap("a", "11")))},
			"stream", "b@2", state.Live, ""},
		{"streaming list is not known", Options{}, 0, []fixture.Answer{fixture.Refusal(t, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)), fixture.Page(t, "10", "", a), fixture.Watch(fixture.Stay)},
			"stream, list, watch 10", "a@1", state.Live, ""},
		{"410 by status", paged, 0, []fixture.Answer{fixture.Page(t, "10", "", a), fixture.Refusal(t, errGone), fixture.Page(t, "20", "", b), fixture.Watch(fixture.Stay)},
			"list, watch 10, list 10, watch 20", "b@2", state.Live, ""},
		{"410 by frame", paged, 0, []fixture.Answer{fixture.Page(t, "10", "", a), fixture.Watch(nil, fixture.WireError(t, errGone)), fixture.Page(t, "20", "", b), fixture.Watch(fixture.Stay)},
			"list, watch 10, list 10, watch 20", "b@2", state.Live, ""},
		{"too large", paged, 0, []fixture.Answer{fixture.Page(t, "10", "", a), fixture.Watch(nil, fixture.WireError(t, errGone)), fixture.Refusal(t, tooLargeVersion()), fixture.Page(t, "20", "", b), fixture.Watch(fixture.Stay)},
			"list, watch 10, list 10, list, watch 20", "b@2", state.Live, ""},
		{"429", paged, 0, []fixture.Answer{fixture.Refusal(t, apierrors.NewTooManyRequests("slow", 20)), fixture.Page(t, "10", "", a), fixture.Watch(fixture.Stay)},
			"list, list, watch 10", "a@1", state.Live, ""},
		{"500 as text", paged, 0, []fixture.Answer{fixture.Body(500, "text/plain", "boom"), fixture.Page(t, "10", "", a), fixture.Watch(fixture.Stay)},
			"list, list, watch 10", "a@1", state.Live, ""},
		{"refused", paged, 3, []fixture.Answer{fixture.Page(t, "10", "", a), fixture.Watch(fixture.Stay)},
			"list, watch 10", "a@1", state.Live, ""},
		{"clean end", paged, 0, []fixture.Answer{fixture.Page(t, "10", "", a), fixture.Watch(nil, fixture.Wire(t, listwatch.FrameAdded, fixture.ConfigMap("b", "11"))), fixture.Watch(fixture.Stay)},
			"list, watch 10, watch 11", "a@1 b@11", state.Live, ""},
		{"unexpected end of a watch", paged, 0, []fixture.Answer{fixture.Page(t, "10", "", a), fixture.Watch(fixture.Abort, fixture.Wire(t, listwatch.FrameAdded, fixture.ConfigMap("b", "11")), fixture.Wire(t, listwatch.FrameAdded, fixture.ConfigMap("c", "12"))[:20]), fixture.Watch(fixture.Stay)},
			"list, watch 10, watch 11", "a@1 b@11", state.Live, ""},
		{"unexpected end of a list", paged, 0, []fixture.Answer{func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "k8s")
			fixture.Abort(w, r)
		}, fixture.Page(t, "10", "", a), fixture.Watch(fixture.Stay)},
			"list, list, watch 10", "a@1", state.Live, ""},
		{"403", paged, 0, []fixture.Answer{fixture.Refusal(t, forbidden)}, "list", "", state.Forbidden, "configmaps is forbidden"},
		{"401", paged, 0, []fixture.Answer{fixture.Refusal(t, apierrors.NewUnauthorized("expired"))}, "list", "", state.Unauthorized, "expired"},
		{"404 as text", paged, 0, []fixture.Answer{fixture.Body(404, "text/plain", "404 page not found\n")}, "list", "", state.NotServed, "404 page not found"},
		{"HTML with 200 for a list", paged, 0, []fixture.Answer{fixture.Body(200, "text/html", "<html>log in</html>")}, "list", "", state.Stale, "log in"},
		{"a Table for a list", paged, 0, []fixture.Answer{fixture.Body(200, "application/json", `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"10"},"columnDefinitions":[],"rows":[{"cells":["a"]}]}`)}, "list", "", state.Stale, `of kind "Table", not a list of`},
		{"an object for a list", paged, 0, []fixture.Answer{fixture.Body(200, "application/json", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"10"}}`)}, "list", "", state.Stale, "not a list of"},
		{"HTML with 200 for a watch", paged, 0, []fixture.Answer{fixture.Page(t, "10", "", a), fixture.Body(200, "text/html", "<html>log in</html>")}, "list, watch 10, watch 10", "a@1", state.Stale, "log in"},
		{"JSON that is cut short", paged, 0, []fixture.Answer{fixture.Body(200, restclient.ContentJSON, `{"kind":"ConfigMapList","items":[{"meta`), fixture.Page(t, "10", "", a), fixture.Watch(fixture.Stay)},
			"list, list, watch 10", "a@1", state.Live, ""},
		{"gibberish on a watch", paged, 0, []fixture.Answer{fixture.Page(t, "10", "", a), fixture.Watch(fixture.Stay, fixture.Wire(t, listwatch.FrameAdded, fixture.ConfigMap("b", "11")), []byte{0, 0, 0, 2, 0xff, 0xff}), fixture.Watch(fixture.Stay)},
			"list, watch 10, watch 11", "a@1 b@11", state.Live, ""},
		{"a frame too large to read", paged, 0, []fixture.Answer{fixture.Page(t, "10", "", a), fixture.Watch(fixture.Stay, []byte{0xff, 0xff, 0xff, 0xff}), fixture.Watch(fixture.Stay)},
			"list, watch 10, watch 10", "a@1", state.Live, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fixture.Serve(t, c.answers...)
				s.Mu.Dead = c.dead
				m, current := reflectFor(t, 4*time.Minute, listerWatcher(t, s, listwatch.Scope{}), c.opts)
				asked := strings.Join(s.Requests(), ", ")
				if asked != c.asked && !strings.HasPrefix(asked, c.asked+", ") {
					t.Errorf("got requests %s\n           want %s", asked, c.asked)
				}
				if got := m.held(); got != c.held {
					t.Errorf("got %q, want %q: what is kept is not what the server has\n%s", got, c.held, m.history())
				}
				if current.State != c.state || !strings.Contains(current.Reason, c.reason) {
					t.Errorf("got %s, want %s because of %q", current, c.state, c.reason)
				}
			})
		})
	}
}

// do runs f against a server in a bubble, which shows that nothing is left
// running.
func do(t *testing.T, f func(t *testing.T, lw listwatch.ListerWatcher[kube.Object], s *fixture.Server), answers ...fixture.Answer) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := fixture.Serve(t, answers...)
		f(t, listerWatcher(t, s, listwatch.Scope{}), s)
	})
}

func TestREST_ListOfAnotherKind(t *testing.T) {
	do(t, func(t *testing.T, lw listwatch.ListerWatcher[kube.Object], _ *fixture.Server) {
		p, err := lw.List(t.Context(), listwatch.ListOptions{Limit: 1})
		if _, ok := errors.AsType[*kube.UnexpectedAnswerError](err); !ok || !strings.Contains(err.Error(), `of kind "PodList", not a list of ConfigMap`) {
			t.Errorf("got %+v and %v, want an UnexpectedAnswerError: taken as a list, it would delete what it does not have", p, err)
		}
		_, err = lw.List(t.Context(), listwatch.ListOptions{Limit: 1})
		if _, ok := errors.AsType[*kube.UnexpectedAnswerError](err); !ok || strings.Contains(err.Error(), "hidden") {
			t.Errorf("got %v, want an UnexpectedAnswerError without what is in the object", err)
		}
		_, err = lw.List(t.Context(), listwatch.ListOptions{Limit: 1})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("got %v, want what the Status says, although the code is 200", err)
		}
	},
		fixture.Body(200, restclient.ContentJSON, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"stray"}}]}`),
		fixture.Body(200, restclient.ContentJSON, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":{"a":"hidden"}}`),
		fixture.Body(200, restclient.ContentJSON, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`),
	)
}

func TestREST_WhatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []*url.URL
		record := func(next fixture.Answer) fixture.Answer {
			return func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL)
				next(w, r)
			}
		}
		s := fixture.Serve(t, record(fixture.Page(t, "10", "")), record(fixture.Watch(nil)), record(fixture.Watch(nil)))
		lw := listerWatcher(t, s, listwatch.Scope{Namespace: "prod", LabelSelector: "app in (web,api)", FieldSelector: "metadata.name=a"})
		if _, err := lw.List(t.Context(), listwatch.ListOptions{Limit: 5, ResourceVersion: "7", ResourceVersionMatch: "NotOlderThan"}); err != nil {
			t.Fatal(err)
		}
		for _, o := range []listwatch.WatchOptions{{ResourceVersion: "10", Timeout: time.Minute}, {SendInitialEvents: true, Timeout: time.Minute}} {
			stream, err := lw.Watch(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Next(); err != io.EOF {
				t.Errorf("got %v, want EOF", err)
			}
			if err := stream.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		scope := "fieldSelector=metadata.name%3Da&labelSelector=app+in+%28web%2Capi%29"
		for i, want := range []string{
			scope + "&limit=5&resourceVersion=7&resourceVersionMatch=NotOlderThan",
			"allowWatchBookmarks=true&" + scope + "&resourceVersion=10&timeoutSeconds=60&watch=true",
			"allowWatchBookmarks=true&" + scope + "&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=60&watch=true",
		} {
			if got := asked[i]; got.Path != "/api/v1/namespaces/prod/configmaps" || got.RawQuery != want {
				t.Errorf("got %s?%s\nwant /api/v1/namespaces/prod/configmaps?%s", got.Path, got.RawQuery, want)
			}
		}
		h, dropped := s.Mu.Headers[0], ";drop=metadata.managedFields"
		if got, want := h.Get("Accept"), restclient.ContentProtobuf+dropped+","+restclient.ContentJSON+dropped+","+restclient.ContentProtobuf+","+restclient.ContentJSON; got != want {
			t.Errorf("got Accept %q, want %q", got, want)
		}
		if got := h.Get("User-Agent"); got != rest.DefaultKubernetesUserAgent() {
			t.Errorf("got User-Agent %q", got)
		}
	})
}

func TestREST_ObjectsAreReady(t *testing.T) {
	do(t, func(t *testing.T, lw listwatch.ListerWatcher[kube.Object], _ *fixture.Server) {
		p, err := lw.List(t.Context(), listwatch.ListOptions{Limit: 5})
		if err != nil || len(p.Items) != 1 {
			t.Fatalf("got %+v and %v, want one item", p, err)
		}
		got := p.Items[0].Object.(*corev1.ConfigMap)
		if got.Kind != "ConfigMap" || got.APIVersion != "v1" || got.ManagedFields != nil || got.Data["key"] != "a" || p.Items[0].Key != (kube.Key{Namespace: "prod", Name: "a"}) {
			t.Errorf("got %+v, want a with kind and apiVersion and without managedFields", got)
		}
	}, fixture.Page(t, "10", "", fixture.ConfigMap("a", "1")))
}

func TestREST_SilentServerIsGivenUp_I9(t *testing.T) {
	t.Run("list", func(t *testing.T) {
		do(t, func(t *testing.T, lw listwatch.ListerWatcher[kube.Object], _ *fixture.Server) {
			begun := time.Now()
			_, err := lw.List(t.Context(), listwatch.ListOptions{Limit: 5})
			if !errors.Is(err, base.ErrSilent) || time.Since(begun) != restclient.AnswerWithin {
				t.Errorf("got %v after %v, want errSilent after %v", err, time.Since(begun), restclient.AnswerWithin)
			}
		}, fixture.Hang)
	})
	t.Run("watch without headers", func(t *testing.T) {
		do(t, func(t *testing.T, lw listwatch.ListerWatcher[kube.Object], s *fixture.Server) {
			reflectFor(t, 10*time.Minute, lw, Options{PagedLists: true})
			if got := s.Requests(); len(got) < 3 {
				t.Errorf("got requests %v, want the watch asked for again", got)
			}
		}, fixture.Page(t, "10", "", fixture.ConfigMap("a", "1")), fixture.Hang)
	})
	t.Run("watch past its timeout", func(t *testing.T) {
		do(t, func(t *testing.T, lw listwatch.ListerWatcher[kube.Object], s *fixture.Server) {
			reflectFor(t, steps.LongestWatch+steps.Overdue+time.Second, lw, Options{PagedLists: true})
			if got := strings.Join(s.Requests(), ", "); got != "list, watch 10, watch 10" {
				t.Errorf("got requests %s, want the watch opened again once its time is long over", got)
			}
		}, fixture.Page(t, "10", "", fixture.ConfigMap("a", "1")), fixture.Watch(fixture.Hang))
	})
	t.Run("streaming list without end", func(t *testing.T) {
		do(t, func(t *testing.T, lw listwatch.ListerWatcher[kube.Object], s *fixture.Server) {
			m, current := reflectFor(t, 3*time.Minute, lw, Options{})
			if got := strings.Join(s.Requests(), ", "); got != "stream, stream, list, watch 10" || m.held() != "a@1" || !current.Synced {
				t.Errorf("got requests %s, %q, %s; want a list after two tries", got, m.held(), current)
			}
		}, fixture.Watch(fixture.Hang, fixture.Wire(t, listwatch.FrameAdded, fixture.ConfigMap("a", "1"))), fixture.Watch(fixture.Hang), fixture.Page(t, "10", "", fixture.ConfigMap("a", "1")), fixture.Watch(fixture.Hang))
	})
}

func TestREST_EndOfContextEndsEverything_I10(t *testing.T) {
	for name, answers := range map[string][]fixture.Answer{
		"in a list":           {fixture.Hang},
		"in a streaming list": {fixture.Watch(fixture.Hang, fixture.Wire(t, listwatch.FrameAdded, fixture.ConfigMap("a", "1")))},
		"in a watch":          {fixture.Watch(fixture.Hang, fixture.WireBookmark(t, "10", true))},
		"in a pause":          {fixture.Body(500, "text/plain", "boom")},
	} {
		t.Run(name, func(t *testing.T) {
			// The bubble fails when a goroutine is left.
			do(t, func(t *testing.T, lw listwatch.ListerWatcher[kube.Object], _ *fixture.Server) {
				reflectFor(t, time.Second, lw, Options{PagedLists: name == "in a list"})
			}, answers...)
		})
	}
}

func TestREST_KindInstalledLaterIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fixture.Serve(t)
		transport := &http.Transport{DialContext: s.Dial}
		t.Cleanup(transport.CloseIdleConnections)
		cfg := &rest.Config{Host: "http://memory", Transport: transport}
		server, err := restclient.NewServer(cfg, &http.Client{Transport: transport}, pacing.DefaultConcurrentLists)
		if err != nil {
			t.Fatal(err)
		}
		r := restclient.NewResolver(server)
		if _, _, err := r.Resolve(t.Context(), restclient.Target{Kind: fixture.SiteKind}); !isNotServed(err) {
			t.Errorf("got %v, want a NotServedError", err)
		}
		before := len(s.Requests())
		for range 100 {
			_, _, _ = r.Resolve(t.Context(), restclient.Target{Kind: fixture.SiteKind})
		}
		if got := len(s.Requests()) - before; got != 0 {
			t.Errorf("got %d requests for a kind that was just missing, want none within a second", got)
		}
		s.Mu.Lock()
		s.Mu.Answers = []fixture.Answer{fixture.Body(200, restclient.ContentJSON, `{"resources":[{"name":"sites","kind":"Site","namespaced":true},{"name":"sites/scale","kind":"Scale"}]}`)}
		s.Mu.Unlock()
		time.Sleep(restclient.MissMemory)
		_, m, err := r.Resolve(t.Context(), restclient.Target{Kind: fixture.SiteKind})
		if err != nil || m.Resource.Resource != "sites" || !m.Namespaced {
			t.Errorf("got %+v and %v, want the namespaced resource sites", m, err)
		}
		if namespaced, known := r.Namespaced(restclient.Target{Kind: fixture.SiteKind}); !namespaced || !known {
			t.Errorf("got namespaced %v, known %v, want both", namespaced, known)
		}
		if _, _, err := r.Resolve(t.Context(), restclient.Target{Kind: fixture.SiteKind.GroupVersion().WithKind("Scale")}); !isNotServed(err) {
			t.Errorf("got %v: a subresource was taken for a resource", err)
		}
		broken := fixture.SiteKind
		broken.Group = "broken"
		if _, _, err := r.Resolve(t.Context(), restclient.Target{Kind: broken}); err == nil || isNotServed(err) {
			t.Errorf("got %v, want the error of the broken group, which may be served for all that is known", err)
		}
		if _, m, err := r.Resolve(t.Context(), restclient.Target{Kind: corev1.SchemeGroupVersion.WithKind("Node")}); err != nil || m.Namespaced {
			t.Errorf("got %+v and %v: a broken group harms another", m, err)
		}
	})
}

func isNotServed(err error) bool { _, ok := errors.AsType[*kube.NotServedError](err); return ok }
