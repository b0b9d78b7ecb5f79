// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// httpServer is a scripted API server behind in-memory connections.
type httpServer struct {
	scheme *runtime.Scheme
	conns  chan net.Conn
	server *http.Server
	mu     struct {
		sync.Mutex
		answers []func(w http.ResponseWriter, r *http.Request)
		asked   []string
		headers []http.Header
		dead    int // connections to refuse
	}
}

// serve starts the server, and ends it with the test. Answers are given in
// order to requests that are not discovery; the last one again and again.
func serve(t *testing.T, answers ...func(http.ResponseWriter, *http.Request)) *httpServer {
	s := &httpServer{scheme: testScheme(), conns: make(chan net.Conn)}
	s.mu.answers = answers
	s.server = &http.Server{Handler: s}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.server.Serve(s) })
	t.Cleanup(func() {
		_ = s.server.Close()
		wg.Wait()
	})
	return s
}

// Accept, Close and Addr make it a net.Listener.
func (s *httpServer) Accept() (net.Conn, error) {
	if c, ok := <-s.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (s *httpServer) Close() error   { close(s.conns); return nil }
func (s *httpServer) Addr() net.Addr { return &net.TCPAddr{} }

func (s *httpServer) dial(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	refuse := s.mu.dead > 0
	s.mu.dead--
	s.mu.Unlock()
	if refuse {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	s.conns <- theirs
	return ours, nil
}

func (s *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/v1":
		w.Header().Set("Content-Type", contentJSON)
		fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true},{"name":"configmaps/odd","kind":"ConfigMap"},{"name":"nodes","kind":"Node"}]}`)
		return
	case "/apis/broken/v1":
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		return
	}
	s.mu.Lock()
	what := "list"
	q := r.URL.Query()
	switch {
	case q.Get("sendInitialEvents") == "true":
		what = "stream"
	case q.Get("watch") == "true":
		what = "watch"
	}
	if q.Get("continue") != "" {
		what += " " + q.Get("continue")
	}
	s.mu.asked = append(s.mu.asked, strings.TrimSpace(what+" "+q.Get("resourceVersion")))
	s.mu.headers = append(s.mu.headers, r.Header)
	if len(s.mu.answers) == 0 {
		s.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	answer := s.mu.answers[0]
	if len(s.mu.answers) > 1 {
		s.mu.answers = s.mu.answers[1:]
	}
	s.mu.Unlock()
	answer(w, r)
}

func (s *httpServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.asked)
}

// listerWatcher of ConfigMaps on s.
func listerWatcher(t *testing.T, s *httpServer, scope WatchScope) ListerWatcher[*corev1.ConfigMap] {
	t.Helper()
	transport := &http.Transport{DialContext: s.dial}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := &rest.Config{Host: "http://memory", Transport: transport}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server, err := newAPIServer(cfg, client, defaultConcurrentLists)
	if err != nil {
		t.Fatal(err)
	}
	lw, err := newRESTListerWatcher[*corev1.ConfigMap](reflect.TypeFor[*corev1.ConfigMap](), newResolver(server), target{kind: corev1.SchemeGroupVersion.WithKind("ConfigMap")}, scope, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lw
}

func configMap(name, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "prod", ResourceVersion: version, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Data:       map[string]string{"key": name},
	}
}

type answer = func(http.ResponseWriter, *http.Request)

// body answers with a text.
func body(code int, contentType, text string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

// page answers with one page of a list.
func page(t *testing.T, version, more string, objects ...*corev1.ConfigMap) answer {
	list := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: version, Continue: more}}
	for _, o := range objects {
		list.Items = append(list.Items, *o)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		text := protobufPeer(testScheme()).encode(t, list)
		w.Header().Set("Content-Type", contentProtobuf)
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			var zipped bytes.Buffer
			z := gzip.NewWriter(&zipped)
			_, _ = z.Write(text)
			_ = z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			text = zipped.Bytes()
		}
		_, _ = w.Write(text)
	}
}

// watch answers with frames, and then does as after says.
func watch(after func(w http.ResponseWriter, r *http.Request), frames ...[]byte) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentProtobuf+";stream=watch")
		w.WriteHeader(http.StatusOK)
		for _, f := range frames {
			_, _ = w.Write(f)
		}
		w.(http.Flusher).Flush()
		if after != nil {
			after(w, r)
		}
	}
}

// stay keeps a stream open until the client leaves or the timeout it asked for.
func stay(_ http.ResponseWriter, r *http.Request) {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeoutSeconds") + "s")
	if err != nil {
		timeout = time.Hour
	}
	pause(r.Context(), timeout)
}

// hang keeps a stream open, whatever its timeout.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// abort breaks the connection.
func abort(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func wire(t *testing.T, typ FrameType, obj runtime.Object) []byte {
	return protobufPeer(testScheme()).frame(t, typ, obj)
}

func wireBookmark(t *testing.T, version string, end bool) []byte {
	mark := configMap("", version)
	if end {
		mark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return wire(t, FrameBookmark, mark)
}

func wireError(t *testing.T, err error) []byte {
	status := err.(*apierrors.StatusError).ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return wire(t, FrameError, &status)
}

// refusal answers with a Status.
func refusal(t *testing.T, err error) answer {
	status := err.(*apierrors.StatusError).ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	text := jsonPeer(testScheme()).encode(t, &status)
	return func(w http.ResponseWriter, r *http.Request) {
		if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
		}
		body(int(status.Code), contentJSON, string(text))(w, r)
	}
}

func TestREST_Stories(t *testing.T) {
	paged := Options{PagedLists: true}
	a, b := configMap("a", "1"), configMap("b", "2")
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no"))
	for _, c := range []struct {
		name    string
		opts    Options
		dead    int // connections refused first
		answers []answer
		asked   string
		held    string
		state   State
		reason  string
	}{
		{"pages", paged, 0, []answer{page(t, "10", "p2", a), page(t, "10", "", b), watch(stay, wire(t, FrameModified, configMap("a", "11")))},
			"list, list p2, watch 10", "a@11 b@2", StateLive, ""},
		{"streaming list", Options{}, 0, []answer{watch(stay, wire(t, FrameAdded, a), wire(t, FrameAdded, b), wireBookmark(t, "10", true), wire(t, FrameDeleted, configMap("a", "11")))},
			"stream", "b@2", StateLive, ""},
		{"streaming list is not known", Options{}, 0, []answer{refusal(t, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)), page(t, "10", "", a), watch(stay)},
			"stream, list, watch 10", "a@1", StateLive, ""},
		{"410 by status", paged, 0, []answer{page(t, "10", "", a), refusal(t, errGone), page(t, "20", "", b), watch(stay)},
			"list, watch 10, list 10, watch 20", "b@2", StateLive, ""},
		{"410 by frame", paged, 0, []answer{page(t, "10", "", a), watch(nil, wireError(t, errGone)), page(t, "20", "", b), watch(stay)},
			"list, watch 10, list 10, watch 20", "b@2", StateLive, ""},
		{"too large", paged, 0, []answer{page(t, "10", "", a), watch(nil, wireError(t, errGone)), refusal(t, tooLargeVersion()), page(t, "20", "", b), watch(stay)},
			"list, watch 10, list 10, list, watch 20", "b@2", StateLive, ""},
		{"429", paged, 0, []answer{refusal(t, apierrors.NewTooManyRequests("slow", 20)), page(t, "10", "", a), watch(stay)},
			"list, list, watch 10", "a@1", StateLive, ""},
		{"500 as text", paged, 0, []answer{body(500, "text/plain", "boom"), page(t, "10", "", a), watch(stay)},
			"list, list, watch 10", "a@1", StateLive, ""},
		{"refused", paged, 3, []answer{page(t, "10", "", a), watch(stay)},
			"list, watch 10", "a@1", StateLive, ""},
		{"clean end", paged, 0, []answer{page(t, "10", "", a), watch(nil, wire(t, FrameAdded, configMap("b", "11"))), watch(stay)},
			"list, watch 10, watch 11", "a@1 b@11", StateLive, ""},
		{"unexpected end of a watch", paged, 0, []answer{page(t, "10", "", a), watch(abort, wire(t, FrameAdded, configMap("b", "11")), wire(t, FrameAdded, configMap("c", "12"))[:20]), watch(stay)},
			"list, watch 10, watch 11", "a@1 b@11", StateLive, ""},
		{"unexpected end of a list", paged, 0, []answer{func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "k8s")
			abort(w, r)
		}, page(t, "10", "", a), watch(stay)},
			"list, list, watch 10", "a@1", StateLive, ""},
		{"403", paged, 0, []answer{refusal(t, forbidden)}, "list", "", StateForbidden, "configmaps is forbidden"},
		{"401", paged, 0, []answer{refusal(t, apierrors.NewUnauthorized("expired"))}, "list", "", StateUnauthorized, "expired"},
		{"404 as text", paged, 0, []answer{body(404, "text/plain", "404 page not found\n")}, "list", "", StateNotServed, "404 page not found"},
		{"HTML with 200 for a list", paged, 0, []answer{body(200, "text/html", "<html>log in</html>")}, "list", "", StateStale, "log in"},
		{"a Table for a list", paged, 0, []answer{body(200, "application/json", `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"10"},"columnDefinitions":[],"rows":[{"cells":["a"]}]}`)}, "list", "", StateStale, `of kind "Table", not a list of`},
		{"an object for a list", paged, 0, []answer{body(200, "application/json", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"10"}}`)}, "list", "", StateStale, "not a list of"},
		{"HTML with 200 for a watch", paged, 0, []answer{page(t, "10", "", a), body(200, "text/html", "<html>log in</html>")}, "list, watch 10, watch 10", "a@1", StateStale, "log in"},
		{"JSON that is cut short", paged, 0, []answer{body(200, contentJSON, `{"kind":"ConfigMapList","items":[{"meta`), page(t, "10", "", a), watch(stay)},
			"list, list, watch 10", "a@1", StateLive, ""},
		{"gibberish on a watch", paged, 0, []answer{page(t, "10", "", a), watch(stay, wire(t, FrameAdded, configMap("b", "11")), []byte{0, 0, 0, 2, 0xff, 0xff}), watch(stay)},
			"list, watch 10, watch 11", "a@1 b@11", StateLive, ""},
		{"a frame too large to read", paged, 0, []answer{page(t, "10", "", a), watch(stay, []byte{0xff, 0xff, 0xff, 0xff}), watch(stay)},
			"list, watch 10, watch 10", "a@1", StateLive, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, c.answers...)
				s.mu.dead = c.dead
				m, state := reflectFor(t, 4*time.Minute, listerWatcher(t, s, WatchScope{}), c.opts)
				asked := strings.Join(s.requests(), ", ")
				if asked != c.asked && !strings.HasPrefix(asked, c.asked+", ") {
					t.Errorf("got requests %s\n           want %s", asked, c.asked)
				}
				if got := m.held(); got != c.held {
					t.Errorf("got %q, want %q: what is kept is not what the server has\n%s", got, c.held, m.history())
				}
				if state.State != c.state || !strings.Contains(state.Reason, c.reason) {
					t.Errorf("got %s, want %s because of %q", state, c.state, c.reason)
				}
			})
		})
	}
}

// do runs f against a server in a bubble, which shows that nothing is left.
func do(t *testing.T, f func(t *testing.T, lw ListerWatcher[*corev1.ConfigMap], s *httpServer), answers ...answer) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, answers...)
		f(t, listerWatcher(t, s, WatchScope{}), s)
	})
}

func TestREST_ListOfAnotherKind(t *testing.T) {
	do(t, func(t *testing.T, lw ListerWatcher[*corev1.ConfigMap], _ *httpServer) {
		p, err := lw.List(t.Context(), ListOptions{Limit: 1})
		if _, ok := errors.AsType[*UnexpectedAnswerError](err); !ok || !strings.Contains(err.Error(), `of kind "PodList", not a list of ConfigMap`) {
			t.Errorf("got %+v and %v, want an UnexpectedAnswerError: taken as a list, it would delete what it does not have", p, err)
		}
		_, err = lw.List(t.Context(), ListOptions{Limit: 1})
		if _, ok := errors.AsType[*UnexpectedAnswerError](err); !ok || strings.Contains(err.Error(), "hidden") {
			t.Errorf("got %v, want an UnexpectedAnswerError without what is in the object", err)
		}
		_, err = lw.List(t.Context(), ListOptions{Limit: 1})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("got %v, want what the Status says, although the code is 200", err)
		}
	},
		body(200, contentJSON, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"stray"}}]}`),
		body(200, contentJSON, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":{"a":"hidden"}}`),
		body(200, contentJSON, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`),
	)
}

func TestREST_WhatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []*url.URL
		note := func(next answer) answer {
			return func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL)
				next(w, r)
			}
		}
		s := serve(t, note(page(t, "10", "")), note(watch(nil)), note(watch(nil)))
		lw := listerWatcher(t, s, WatchScope{Namespace: "prod", LabelSelector: "app in (web,api)", FieldSelector: "metadata.name=a"})
		if _, err := lw.List(t.Context(), ListOptions{Limit: 5, ResourceVersion: "7", ResourceVersionMatch: "NotOlderThan"}); err != nil {
			t.Fatal(err)
		}
		for _, o := range []WatchOptions{{ResourceVersion: "10", Timeout: time.Minute}, {SendInitialEvents: true, Timeout: time.Minute}} {
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
		h := s.mu.headers[0]
		if got, want := h.Get("Accept"), contentProtobuf+","+contentJSON; got != want {
			t.Errorf("got Accept %q, want %q", got, want)
		}
		if got := h.Get("User-Agent"); got != rest.DefaultKubernetesUserAgent() {
			t.Errorf("got User-Agent %q", got)
		}
	})
}

func TestREST_ObjectsAreReady(t *testing.T) {
	do(t, func(t *testing.T, lw ListerWatcher[*corev1.ConfigMap], _ *httpServer) {
		p, err := lw.List(t.Context(), ListOptions{Limit: 5})
		if err != nil || len(p.Items) != 1 {
			t.Fatalf("got %+v and %v, want one item", p, err)
		}
		got := p.Items[0].Object
		if got.Kind != "ConfigMap" || got.APIVersion != "v1" || got.ManagedFields != nil || got.Data["key"] != "a" || p.Items[0].Key != (Key{Namespace: "prod", Name: "a"}) {
			t.Errorf("got %+v, want a with kind and apiVersion and without managedFields", got)
		}
	}, page(t, "10", "", configMap("a", "1")))
}

func TestREST_SilentServerIsGivenUp_I9(t *testing.T) {
	t.Run("list", func(t *testing.T) {
		do(t, func(t *testing.T, lw ListerWatcher[*corev1.ConfigMap], _ *httpServer) {
			begun := time.Now()
			_, err := lw.List(t.Context(), ListOptions{Limit: 5})
			if !errors.Is(err, errSilent) || time.Since(begun) != answerWithin {
				t.Errorf("got %v after %v, want errSilent after %v", err, time.Since(begun), answerWithin)
			}
		}, hang)
	})
	t.Run("watch without headers", func(t *testing.T) {
		do(t, func(t *testing.T, lw ListerWatcher[*corev1.ConfigMap], s *httpServer) {
			reflectFor(t, 10*time.Minute, lw, Options{PagedLists: true})
			if got := s.requests(); len(got) < 3 {
				t.Errorf("got requests %v, want the watch asked for again", got)
			}
		}, page(t, "10", "", configMap("a", "1")), hang)
	})
	t.Run("watch past its timeout", func(t *testing.T) {
		do(t, func(t *testing.T, lw ListerWatcher[*corev1.ConfigMap], s *httpServer) {
			reflectFor(t, longestWatch+overdue+time.Second, lw, Options{PagedLists: true})
			if got := strings.Join(s.requests(), ", "); got != "list, watch 10, watch 10" {
				t.Errorf("got requests %s, want the watch opened again once its time is long over", got)
			}
		}, page(t, "10", "", configMap("a", "1")), watch(hang))
	})
	t.Run("streaming list without end", func(t *testing.T) {
		do(t, func(t *testing.T, lw ListerWatcher[*corev1.ConfigMap], s *httpServer) {
			m, state := reflectFor(t, 3*time.Minute, lw, Options{})
			if got := strings.Join(s.requests(), ", "); got != "stream, stream, list, watch 10" || m.held() != "a@1" || !state.Synced {
				t.Errorf("got requests %s, %q, %s; want a list after two tries", got, m.held(), state)
			}
		}, watch(hang, wire(t, FrameAdded, configMap("a", "1"))), watch(hang), page(t, "10", "", configMap("a", "1")), watch(hang))
	})
}

func TestREST_EndOfContextEndsEverything_I10(t *testing.T) {
	for name, answers := range map[string][]answer{
		"in a list":           {hang},
		"in a streaming list": {watch(hang, wire(t, FrameAdded, configMap("a", "1")))},
		"in a watch":          {watch(hang, wireBookmark(t, "10", true))},
		"in a pause":          {body(500, "text/plain", "boom")},
	} {
		t.Run(name, func(t *testing.T) {
			// The bubble fails when a goroutine is left.
			do(t, func(t *testing.T, lw ListerWatcher[*corev1.ConfigMap], _ *httpServer) {
				reflectFor(t, time.Second, lw, Options{PagedLists: name == "in a list"})
			}, answers...)
		})
	}
}

func TestREST_KindInstalledLaterIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		transport := &http.Transport{DialContext: s.dial}
		t.Cleanup(transport.CloseIdleConnections)
		cfg := &rest.Config{Host: "http://memory", Transport: transport}
		server, err := newAPIServer(cfg, &http.Client{Transport: transport}, defaultConcurrentLists)
		if err != nil {
			t.Fatal(err)
		}
		r := newResolver(server)
		if _, _, err := r.resolve(t.Context(), target{kind: siteKind}); !isNotServed(err) {
			t.Errorf("got %v, want a NotServedError", err)
		}
		before := len(s.requests())
		for range 100 {
			_, _, _ = r.resolve(t.Context(), target{kind: siteKind})
		}
		if got := len(s.requests()) - before; got != 0 {
			t.Errorf("got %d requests for a kind that was just missing, want none within a second", got)
		}
		s.mu.Lock()
		s.mu.answers = []answer{body(200, contentJSON, `{"resources":[{"name":"sites","kind":"Site","namespaced":true},{"name":"sites/scale","kind":"Scale"}]}`)}
		s.mu.Unlock()
		time.Sleep(missMemory)
		_, m, err := r.resolve(t.Context(), target{kind: siteKind})
		if err != nil || m.Resource.Resource != "sites" || !m.Namespaced {
			t.Errorf("got %+v and %v, want the namespaced resource sites", m, err)
		}
		if namespaced, known := r.namespaced(target{kind: siteKind}); !namespaced || !known {
			t.Errorf("got namespaced %v, known %v, want both", namespaced, known)
		}
		if _, _, err := r.resolve(t.Context(), target{kind: siteKind.GroupVersion().WithKind("Scale")}); !isNotServed(err) {
			t.Errorf("got %v: a subresource was taken for a resource", err)
		}
		broken := siteKind
		broken.Group = "broken"
		if _, _, err := r.resolve(t.Context(), target{kind: broken}); err == nil || isNotServed(err) {
			t.Errorf("got %v, want the error of the broken group, which may be served for all that is known", err)
		}
		if _, m, err := r.resolve(t.Context(), target{kind: corev1.SchemeGroupVersion.WithKind("Node")}); err != nil || m.Namespaced {
			t.Errorf("got %+v and %v: a broken group harms another", m, err)
		}
	})
}

func isNotServed(err error) bool { _, ok := errors.AsType[*NotServedError](err); return ok }
