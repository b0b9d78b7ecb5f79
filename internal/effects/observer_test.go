// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/kube"
)

// listener watches ConfigMaps and Deployments, and notes what it is told.
type listener struct{ heard []string }

func (l *listener) WatchedKind(r schema.GroupVersionResource) (schema.GroupVersionKind, bool) {
	kind, ok := map[string]string{"configmaps": "ConfigMap", "deployments": "Deployment"}[r.Resource]
	return r.GroupVersion().WithKind(kind), ok
}

func (l *listener) Observe(w kube.Written) {
	effect := map[kube.WriteEffect]string{kube.Stored: "Stored", kube.Removed: "Removed", kube.Touched: "Touched"}[w.Effect]
	l.heard = append(l.heard, fmt.Sprintf("%s %s %s %s@%d", effect, w.Kind.Kind, w.Key, w.UID, w.Version))
}

func (l *listener) take() string {
	all := strings.Join(l.heard, ", ")
	l.heard = nil
	return all
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }

// wrapped returns a transport to server that l observes.
func wrapped(t testing.TB, l *listener, server transport) http.RoundTripper {
	t.Helper()
	o, err := NewObserver(&rest.Config{Host: "http://server/prefix"}, clientscheme.Scheme, l, l)
	if err != nil {
		t.Fatal(err)
	}
	return o.Wrap(server)
}

func answer(code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1,
	}
}

func request(t testing.TB, method, path, body string) *http.Request {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://server/prefix"+path, content)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

const (
	web        = "/api/v1/namespaces/prod/configmaps/web"
	all        = "/api/v1/namespaces/prod/configmaps"
	storedText = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"prod","name":"web","uid":"u","resourceVersion":"7"}}`
	named      = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"}}`
	unnamed    = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"web-"}}`
	gone       = `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"uid":"u"}}`
	goneBare   = `{"kind":"Status","apiVersion":"v1","status":"Success"}`
	list       = `{"apiVersion":"v1","kind":"ConfigMapList","items":[` + storedText + `]}`
	failed     = `{"kind":"Status","apiVersion":"v1","status":"Failure"}`
	scale      = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"namespace":"prod","name":"web","uid":"u","resourceVersion":"7"}}`
	deploy     = "/apis/apps/v1/namespaces/prod/deployments/web"
)

func TestTransport_WritesAreReported_R14(t *testing.T) {
	large := strings.Replace(storedText, `"u"`, `"u","annotations":{"a":"`+strings.Repeat("x", maxBody)+`"}`, 1)
	for _, row := range []struct {
		name, method, path, body string
		code                     int
		answer, want             string
	}{
		{"create", "POST", all, named, 201, storedText, "Stored ConfigMap prod/web u@7"},
		{"update", "PUT", web, named, 200, storedText, "Stored ConfigMap prod/web u@7"},
		{"patch", "PATCH", web, `{}`, 200, storedText, "Stored ConfigMap prod/web u@7"},
		{"the options of the request", "PATCH", web + "?fieldManager=x&force=true", `{}`, 200, storedText, "Stored ConfigMap prod/web u@7"},
		{"delete", "DELETE", web, "", 200, gone, "Removed ConfigMap prod/web u@0"},
		{"delete, no UID told", "DELETE", web, "", 200, goneBare, "Touched ConfigMap prod/web @0"},
		{"delete by UID", "DELETE", web, `{"preconditions":{"uid":"asked"}}`, 200, goneBare, "Removed ConfigMap prod/web asked@0"},
		{"delete of a collection", "DELETE", all, "", 200, list, "Removed ConfigMap prod/web u@0"},
		{"delete of a collection, foreground", "DELETE", all, `{"propagationPolicy":"Foreground"}`, 200, list, "Touched ConfigMap prod/web u@0"},
		{"delete of a collection, foreground by query", "DELETE", all + "?propagationPolicy=Foreground", "", 200, list, "Touched ConfigMap prod/web u@0"},
		{"delete with options that cannot be read", "DELETE", web, `no JSON`, 200, gone, "Touched ConfigMap prod/web @0"},
		{"scale", "PATCH", deploy + "/scale", `{}`, 200, scale, "Touched Deployment prod/web u@7"},
		{"another kind in answer", "PUT", web, named, 200, gone, "Touched ConfigMap prod/web @0"},
		{"half an answer", "PUT", web, named, 200, storedText[:60], "Touched ConfigMap prod/web @0"},
		{"no answer", "PUT", web, named, 200, "", "Touched ConfigMap prod/web @0"},
		{"a large answer", "PUT", web, named, 200, large, "Touched ConfigMap prod/web @0"},

		{"get", "GET", web, "", 200, storedText, ""},
		{"list", "GET", all, "", 200, list, ""},
		{"another kind", "PUT", "/api/v1/namespaces/prod/secrets/web", named, 200, storedText, ""},
		{"no resource", "POST", "/version", "", 200, storedText, ""},
		{"a command in a container", "POST", deploy + "/exec", "", 200, storedText, ""},
		{"dry run", "PUT", web + "?dryRun=All", named, 200, storedText, ""},
		{"dry run of delete", "DELETE", web, `{"dryRun":["All"]}`, 200, gone, ""},
		{"dry run of delete by query", "DELETE", web + "?dryRun=All", "", 200, gone, ""},
		{"refused", "PUT", web, named, 422, failed, ""},
		{"conflict", "PUT", web, named, 409, failed, ""},
		{"not found", "DELETE", web, "", 404, failed, ""},
		{"too many", "PUT", web, named, 429, failed, ""},

		{"a fault of the server", "PUT", web, named, 500, failed, "Touched ConfigMap prod/web @0"},
		{"timeout of the server", "DELETE", web, "", 504, failed, "Touched ConfigMap prod/web @0"},
		{"a create that may have been stored", "POST", all, named, 503, failed, "Touched ConfigMap prod/web @0"},
		{"a dry run that may have been answered", "PUT", web + "?dryRun=All", named, 500, failed, ""},
		{"a dry run of delete that may have been answered", "DELETE", web, `{"dryRun":["All"]}`, 500, failed, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := &listener{}
			client := &http.Client{Transport: wrapped(t, l, func(*http.Request) (*http.Response, error) {
				return answer(row.code, row.answer), nil
			})}
			resp, err := client.Do(request(t, row.method, row.path, row.body))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if got := l.take(); got != row.want {
				t.Errorf("reported %q, want %q", got, row.want)
			}
			if err != nil || string(body) != row.answer || resp.StatusCode != row.code {
				t.Errorf("the client read %d bytes and status %d, %v, want the answer as it was: %d bytes and %d", len(body), resp.StatusCode, err, len(row.answer), row.code)
			}
			if err := resp.Body.Close(); err != nil || l.take() != "" {
				t.Errorf("close: %v; it was reported again", err)
			}
		})
	}
}

func TestTransport_LostAnswersAreReported_R14(t *testing.T) {
	over, end := context.WithCancel(context.Background())
	end()
	for _, row := range []struct {
		name string
		ctx  context.Context
		err  error
		want string
	}{
		{"reset", t.Context(), &net.OpError{Op: "read", Err: syscall.ECONNRESET}, "Touched ConfigMap prod/web @0"},
		{"closed", t.Context(), io.EOF, "Touched ConfigMap prod/web @0"},
		{"timeout", t.Context(), context.DeadlineExceeded, "Touched ConfigMap prod/web @0"},
		{"no connection", t.Context(), &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, ""},
		{"the call had ended before", over, context.Canceled, ""},
	} {
		l := &listener{}
		rt := wrapped(t, l, func(*http.Request) (*http.Response, error) { return nil, row.err })
		for method, path := range map[string]string{"POST": all, "PUT": web, "PATCH": web, "DELETE": web} {
			_, err := rt.RoundTrip(request(t, method, path, named).WithContext(row.ctx))
			if got := l.take(); got != row.want || !errors.Is(err, row.err) {
				t.Errorf("%s: %s: reported %q with %v, want %q", row.name, method, got, err, row.want)
			}
		}
		_, err := rt.RoundTrip(request(t, "POST", all, unnamed).WithContext(row.ctx))
		if got, want := l.take(), strings.ReplaceAll(row.want, "/web", "/"); err == nil || got != want {
			t.Errorf("%s: a create without a name: reported %q, want %q: any object of the namespace may be new", row.name, got, want)
		}
	}
}

// cut is a body that breaks off.
type cut struct{ io.Reader }

func (c cut) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestTransport_AnswerThatIsNotReadToItsEndIsATouch_R14(t *testing.T) {
	const touched = "Touched ConfigMap prod/web @0"
	for name, read := range map[string]func(io.ReadCloser) error{
		"not read":    func(b io.ReadCloser) error { return b.Close() },
		"partly read": func(b io.ReadCloser) error { _, err := b.Read(make([]byte, 10)); return errors.Join(err, b.Close()) },
	} {
		l := &listener{}
		resp, err := wrapped(t, l, func(*http.Request) (*http.Response, error) { return answer(201, storedText), nil }).RoundTrip(request(t, "POST", all, named))
		if err != nil {
			t.Fatal(err)
		}
		if err := read(resp.Body); err != nil || l.take() != touched {
			t.Errorf("%s: %v; want %s", name, err, touched)
		}
	}
	l := &listener{}
	resp, err := wrapped(t, l, func(*http.Request) (*http.Response, error) {
		a := answer(200, "")
		a.Body = io.NopCloser(cut{strings.NewReader(storedText)})
		return a, nil
	}).RoundTrip(request(t, "PUT", web, named))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || l.take() != touched {
		t.Errorf("broken off: %v; want %s", err, touched)
	}
	resp, err = wrapped(t, l, func(*http.Request) (*http.Response, error) {
		a := answer(200, storedText)
		a.Header.Set("Content-Encoding", "br")
		return a, nil
	}).RoundTrip(request(t, "PUT", web, named))
	if err != nil || l.take() != touched {
		t.Errorf("encoded: %v; want %s", err, touched)
	}
	_ = resp.Body.Close()
}

// A client that knows the length of an answer need not read beyond it.
func TestTransport_EndIsKnownFromTheLength_R14(t *testing.T) {
	l := &listener{}
	resp, err := wrapped(t, l, func(*http.Request) (*http.Response, error) {
		a := answer(200, storedText)
		a.ContentLength = int64(len(storedText))
		return a, nil
	}).RoundTrip(request(t, "PUT", web, named))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, len(storedText))); err != nil || l.take() != "Stored ConfigMap prod/web u@7" {
		t.Errorf("%v; the write was not reported when its last byte had been read", err)
	}
}

// A DELETE whose options cannot be read again may be a dry run, so nothing is certain.
func TestTransport_OptionsThatCannotBeReadLeaveATouch_R14(t *testing.T) {
	l := &listener{}
	req := request(t, "DELETE", web, `{"dryRun":["All"]}`)
	req.GetBody = nil
	resp, err := wrapped(t, l, func(*http.Request) (*http.Response, error) { return answer(200, gone), nil }).RoundTrip(req)
	if err != nil || l.take() != "Touched ConfigMap prod/web @0" {
		t.Errorf("%v; want the key touched, not removed", err)
	}
	_ = resp.Body.Close()
}

func TestTransport_ReadsProtobuf_R14(t *testing.T) {
	message := func(apiVersion, kind string, obj interface{ Marshal() ([]byte, error) }) []byte {
		raw, err := obj.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
		body, err := unknown.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte(ProtobufMagic), body...)
	}
	uid := types.UID("asked")
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web", UID: "u", ResourceVersion: "7"}}
	for _, row := range []struct {
		name, method, path string
		sent, answer       []byte
		code               int
		want               string
	}{
		{"create", "POST", all, message("v1", "ConfigMap", configMap), message("v1", "ConfigMap", configMap), 201, "Stored ConfigMap prod/web u@7"},
		{"create, lost", "POST", all, message("v1", "ConfigMap", configMap), nil, 500, "Touched ConfigMap prod/web @0"},
		{"delete", "DELETE", web, message("v1", "DeleteOptions", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}), message("v1", "Status", &metav1.Status{Status: "Success"}), 200, "Removed ConfigMap prod/web asked@0"},
		{"dry run", "DELETE", web, message("v1", "DeleteOptions", &metav1.DeleteOptions{DryRun: []string{"All"}}), message("v1", "Status", &metav1.Status{Status: "Success"}), 200, ""},
	} {
		l := &listener{}
		req := request(t, row.method, row.path, string(row.sent))
		req.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
		resp, err := wrapped(t, l, func(*http.Request) (*http.Response, error) {
			a := answer(row.code, string(row.answer))
			a.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
			return a, nil
		}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(body, row.answer) || l.take() != row.want {
			t.Errorf("%s: %v; want %q", row.name, err, row.want)
		}
		_ = resp.Body.Close()
	}
}

type reporter struct{ to any }

func (r reporter) ReportsTo() any { return r.to }

func (r reporter) Kind() schema.GroupVersionKind { return schema.GroupVersionKind{} }

func TestTransport_OwnReportsAndOtherServersPass_R14(t *testing.T) {
	l := &listener{}
	rt := wrapped(t, l, func(*http.Request) (*http.Response, error) { return answer(200, storedText), nil })
	put := func(change func(*http.Request) *http.Request) string {
		resp, err := rt.RoundTrip(change(request(t, "PUT", web, named)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		return l.take()
	}
	as := func(to any) func(*http.Request) *http.Request {
		return func(r *http.Request) *http.Request {
			return r.WithContext(WithReporter(r.Context(), reporter{to}))
		}
	}
	const seen = "Stored ConfigMap prod/web u@7"
	if got := put(as(l)); got != "" {
		t.Errorf("a write that its sender reports is reported as %q too", got)
	}
	if got := put(as(&listener{})); got != seen {
		t.Errorf("a write that its sender reports to another is reported as %q, want %q", got, seen)
	}
	if got := put(as(nil)); got != seen {
		t.Errorf("a write that its sender reports to nobody is reported as %q, want %q", got, seen)
	}
	if got := put(func(r *http.Request) *http.Request { r.URL.Host = "other"; return r }); got != "" {
		t.Errorf("a write to another server is reported as %q", got)
	}
}

// uncomparable is an Observer of a program whose type has no ==.
type uncomparable struct {
	*listener
	_ []int
}

func TestNew_ReceiverNeedNotBeComparable_R14(t *testing.T) {
	u := uncomparable{listener: &listener{}}
	o, err := NewObserver(&rest.Config{Host: "http://server/prefix"}, clientscheme.Scheme, u, u)
	if err != nil {
		t.Fatal(err)
	}
	req := request(t, "PUT", web, named)
	req = req.WithContext(WithReporter(req.Context(), reporter{u}))
	resp, err := o.Wrap(transport(func(*http.Request) (*http.Response, error) { return answer(200, storedText), nil })).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if u.take() == "" {
		t.Error("nothing was reported")
	}
}

// passing returns requests that are not reported.
func passing(t testing.TB, l *listener) map[string]*http.Request {
	own := request(t, "PUT", web, named)
	return map[string]*http.Request{
		"a read":                       request(t, "GET", web, ""),
		"a write of an unwatched kind": request(t, "PUT", "/api/v1/namespaces/prod/secrets/web", named),
		"an own write":                 own.WithContext(WithReporter(own.Context(), &reporter{l})),
	}
}

func BenchmarkTransport(b *testing.B) {
	l := &listener{}
	resp := answer(200, storedText)
	rt := wrapped(b, l, func(*http.Request) (*http.Response, error) { return resp, nil })
	for name, req := range passing(b, l) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = rt.RoundTrip(req)
			}
		})
	}
}

func TestTransport_WhatIsNotReportedAllocatesNothing_M12(t *testing.T) {
	l := &listener{}
	resp := answer(200, storedText)
	rt := wrapped(t, l, func(*http.Request) (*http.Response, error) { return resp, nil })
	for name, req := range passing(t, l) {
		if n := testing.AllocsPerRun(100, func() { _, _ = rt.RoundTrip(req) }); n != 0 {
			t.Errorf("%s allocates %v times, want none", name, n)
		}
	}
	if !slices.Equal(l.heard, nil) {
		t.Errorf("reported %q, want nothing", l.take())
	}
}
