// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/kube"
)

// task notes what is recorded.
type task struct {
	off, full bool
	notes     []string
}

func (*task) Moved()                         {}
func (*task) Name() (controller, key string) { return "website", "shop/web" }
func (t *task) Records() bool                { return !t.off }
func (t *task) Effected(w kube.Written, _ kube.Version) {
	t.notes = append(t.notes, "effect on "+w.Key.String())
}

func (t *task) Sent(q contextvalues.Request) int {
	if t.full {
		return -1
	}
	cached := ""
	if q.Cache != nil {
		cached = "cached"
	}
	t.notes = append(t.notes, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %s %d %s", q.Verb, q.Path, q.Version, q.Kind, q.Key, q.Bytes, cached)), " "))
	return len(t.notes)
}

func (t *task) Answered(number int, a contextvalues.Answer) {
	t.notes = append(t.notes, fmt.Sprintf("%d: %d %d %t", number, a.Code, a.Bytes, a.Ended))
}

func (t *task) take() string {
	all := strings.Join(t.notes, ", ")
	t.notes = nil
	return all
}

// nothingCached is a cache without objects.
type nothingCached struct{}

func (nothingCached) Cached(schema.GroupVersionKind, kube.Key, kube.Object) kube.Object { return nil }

// recorded returns a transport to server that records, as the manager's does, and a context of t.
func recordedBy(t *testing.T, by *task, server transport) (http.RoundTripper, context.Context) {
	t.Helper()
	o, err := NewObserver(&rest.Config{Host: "http://server/prefix"}, clientscheme.Scheme, &listener{}, &listener{})
	if err != nil {
		t.Fatal(err)
	}
	return o.Wrap(o.Recording(nothingCached{}).Wrap(server)), context.WithValue(t.Context(), contextvalues.TaskKey{}, by)
}

func TestRecording_RequestsAreRecorded_R29(t *testing.T) {
	for _, row := range []struct{ method, path, contentType, want string }{
		{"GET", web, "", "get /api/v1/namespaces/prod/configmaps/web v1 ConfigMap prod/web 0"},
		{"GET", all + "?labelSelector=a%3Db&continue=x", "", "list /api/v1/namespaces/prod/configmaps v1 ConfigMap prod/ 0"},
		{"GET", all + "?watch=true", "", "watch /api/v1/namespaces/prod/configmaps v1 ConfigMap prod/ 0"},
		{"GET", "/api/v1/nodes?watch=1", "", "watch /api/v1/nodes v1 / 0"},
		{"POST", all, "", "create /api/v1/namespaces/prod/configmaps v1 ConfigMap prod/ 2 cached"},
		{"PUT", web, "", "update /api/v1/namespaces/prod/configmaps/web v1 ConfigMap prod/web 2 cached"},
		{"PATCH", web, "application/merge-patch+json", "patch /api/v1/namespaces/prod/configmaps/web v1 ConfigMap prod/web 2 cached"},
		{"PATCH", deploy + "/status?fieldManager=x", "application/apply-patch+yaml", "apply /apis/apps/v1/namespaces/prod/deployments/web/status apps/v1 Deployment prod/web 2 cached"},
		{"DELETE", web, "", "delete /api/v1/namespaces/prod/configmaps/web v1 ConfigMap prod/web 2 cached"},
		{"DELETE", all, "", "deletecollection /api/v1/namespaces/prod/configmaps v1 ConfigMap prod/ 2 cached"},
		{"PUT", "/api/v1/nodes/a", "", "update /api/v1/nodes/a v1 /a 2"},
		{"POST", deploy + "/proxy/login/s3cr3t", "", "create /apis/apps/v1/namespaces/prod/deployments/web/proxy apps/v1 Deployment prod/web 2"},
		{"GET", "/version?x=s3cr3t", "", "get /version / 0"},
		{"HEAD", "/readyz", "", "head /readyz / 0"},
	} {
		by := &task{}
		rt, ctx := recordedBy(t, by, func(*http.Request) (*http.Response, error) { return answer(500, "{}"), nil })
		body := "{}"
		if row.method == "GET" || row.method == "HEAD" {
			body = ""
		}
		req := request(t, row.method, row.path, body).WithContext(ctx)
		req.Header.Set("Content-Type", row.contentType)
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		got, _, _ := strings.Cut(by.take(), ", effect")
		if want := row.want + ", 1: 500 0 false, 1: 500 2 true"; got != want && got != strings.Replace(want, ", 1: 500 2 true", "", 1) {
			t.Errorf("%s %s: recorded %q, want %q", row.method, row.path, got, want)
		}
	}
}

func TestRecording_EffectsOfForeignClientsAreRecorded_R29(t *testing.T) {
	by := &task{}
	rt, ctx := recordedBy(t, by, func(*http.Request) (*http.Response, error) { return answer(200, storedText), nil })
	resp, err := rt.RoundTrip(request(t, "PUT", web, named).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(resp.Body)
	if got := by.take(); !strings.HasSuffix(got, fmt.Sprintf("1: 200 %d true, effect on prod/web", len(storedText))) {
		t.Errorf("recorded %q, want the effect after the answer", got)
	}
	_ = resp.Body.Close()
	if got := by.take(); got != "" {
		t.Errorf("the close of what was read is recorded: %q", got)
	}
}

func TestRecording_PassesOnWhatItDoesNotRecord(t *testing.T) {
	cut := errors.New("the wire is cut")
	upgraded := &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: http.NoBody}
	for _, row := range []struct {
		name string
		by   *task
		resp *http.Response
		err  error
		want string
	}{
		{"off", &task{off: true}, answer(200, ""), nil, ""},
		{"full", &task{full: true}, answer(200, ""), nil, ""},
		{"an error", &task{}, nil, cut, "get /version / 0, 1: 0 0 true"},
		{"an upgrade", &task{}, upgraded, nil, "get /version / 0, 1: 101 0 false"},
	} {
		rt, ctx := recordedBy(t, row.by, func(*http.Request) (*http.Response, error) { return row.resp, row.err })
		resp, err := rt.RoundTrip(request(t, "GET", "/version", "").WithContext(ctx))
		if resp != row.resp || !errors.Is(err, row.err) {
			t.Errorf("%s: got %v, %v, want what the server answers", row.name, resp, err)
		}
		if got := row.by.take(); got != row.want {
			t.Errorf("%s: recorded %q, want %q", row.name, got, row.want)
		}
	}
	always := answer(200, "")
	rt, _ := recordedBy(t, &task{}, func(*http.Request) (*http.Response, error) { return always, nil })
	req := request(t, "GET", "/version", "")
	if n := testing.AllocsPerRun(10, func() { _, _ = rt.RoundTrip(req) }); n > 0 {
		t.Errorf("a request outside of a reconcile allocates %.0f times, want never", n)
	}
}
