// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager/console"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

const hostile = `"><script>alert('x')</script><img src=x onerror=alert(1)>` + "\r\rretry: 1"

// program is one controller with one key.
type program struct {
	name string
	text string // in each field that an object or a server can choose
	obj  kube.Object
	// ended counts the reconciles.
	ended atomic.Uint64
	stops atomic.Bool
}

func (p *program) Parts() inspect.Parts {
	parts := inspect.Parts{
		Program: p.name, Now: time.Now(), Phase: "running", Since: time.Now(), Controllers: []reconcile.Snapshot{p.Snapshot()},
		Informers:  []state.Informer{{Scopes: []state.Scope{{}}, Handlers: []state.Handler{{}}}},
		Leadership: &inspect.Leadership{}, Sharing: p.Sharing(), Members: []inspect.Member{{}},
		Webhooks: &inspect.Webhooks{Certificate: &inspect.Certificate{Names: []string{""}, NotAfter: time.Now().Add(time.Hour)}, Webhooks: []inspect.Hook{{Failed: 1}}},
	}
	fill(reflect.ValueOf(parts.Webhooks).Elem(), p.text)
	fill(reflect.ValueOf(parts.Webhooks.Certificate).Elem(), p.text)
	fill(reflect.ValueOf(&parts.Informers).Elem(), p.text)
	parts.Informers[0].Scopes[0].State = state.Forbidden
	fill(reflect.ValueOf(parts.Leadership).Elem(), p.text)
	fill(reflect.ValueOf(&parts.Members).Elem(), p.text)
	return parts
}

// Sharing has a replica whose address is hostile, too.
func (p *program) Sharing() *inspect.Sharing {
	s := &inspect.Sharing{
		Replicas: []inspect.Replica{{Me: true}, {}, {}}, Moves: []inspect.Move{{At: time.Now()}}, Refused: 2,
		Shards: []inspect.Shard{{Keys: []string{""}}, {Shard: 1}, {Shard: 2}},
	}
	fill(reflect.ValueOf(s).Elem(), p.text)
	s.Replicas[1].Name, s.Replicas[1].Address = "b", "javascript://x/%0aalert(1)"
	s.Replicas[2].Name, s.Replicas[2].Address = "c", "https://10.0.0.7:8443/"+p.text
	s.Shards[1].Holder, s.Shards[2].Holder = "", "c"
	s.Shards[1].Next, s.Shards[2].Stage, s.Shards[2].Next = "c", "", ""
	s.Plan = "3/namespace"
	return s
}

func (p *program) Stopping() bool { return p.stops.Load() }

func (p *program) Name() string { return "website" }

func (p *program) Controller(string) inspect.Controlled { return p }

func (p *program) Cached(schema.GroupKind, kube.Key) (kube.Object, schema.GroupVersionKind) {
	return p.obj, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
}

func (p *program) Snapshot() reconcile.Snapshot {
	s := reconcile.Snapshot{Workers: 2, Sources: []source.Snapshot{{}}, Running: []reconcile.Running{{}}}
	fill(reflect.ValueOf(&s).Elem(), p.text)
	s.Outcomes = map[reconcile.Outcome]uint64{reconcile.OutcomeDone: p.ended.Load(), reconcile.OutcomeError: 3}
	s.Sources[0].Kind = schema.GroupKind{Kind: "Secret"}
	s.Sources[0].Owners = schema.GroupKind{}
	return s
}

func (p *program) RecordedKeys(q reconcile.KeysQuery) reconcile.KeysPage {
	k := reconcile.KeyRuns{Ended: time.Now()}
	if fill(reflect.ValueOf(&k).Elem(), p.text); q.Match != nil && !q.Match(k) {
		return reconcile.KeysPage{}
	}
	return reconcile.KeysPage{Keys: []reconcile.KeyRuns{k}}
}

func (p *program) RunsOf(string) []reconcile.PastRun {
	r := reconcile.PastRun{Began: time.Now(), Requests: []reconcile.Request{{Fields: []string{""}, Code: 500}}, Causes: reconcile.Causes{Count: 3}}
	fill(reflect.ValueOf(&r).Elem(), p.text)
	r.Requests[0].Effect = "changed"
	return []reconcile.PastRun{r, r}
}

func (p *program) Findings() []reconcile.Finding {
	return []reconcile.Finding{{Kind: reconcile.HotLoop, Key: p.text, Object: p.text, Fields: []string{p.text}, Since: time.Now()}}
}

func (p *program) QueuedKeys() []workqueue.KeyState[string] {
	k := workqueue.KeyState[string]{Due: time.Now().Add(time.Hour), Attempts: 2}
	fill(reflect.ValueOf(&k).Elem(), p.text)
	return []workqueue.KeyState[string]{k}
}

// fill sets each exported text in v.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	}
}

var pages = []string{
	"", "informers", "replicas", "controllers/website", "controllers/website?filter=(&state=lost", "search?q=" + url.QueryEscape(hostile),
	"controllers/" + url.PathEscape(hostile), "controllers/website/key?key=" + url.QueryEscape(hostile), "controllers/website/key?key=gone",
}

func open(t *testing.T, p console.Program, page string) (code int, body string, header http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	console.Handler(p).ServeHTTP(w, httptest.NewRequest(http.MethodGet, console.Path+page, nil))
	return w.Code, w.Body.String(), w.Header()
}

// Whatever the names, labels and errors of objects are, they are text.
func TestConsole_HostileTextIsText_M25(t *testing.T) {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: hostile, Labels: map[string]string{hostile: hostile}, OwnerReferences: []metav1.OwnerReference{{Kind: hostile, Name: hostile}}}}
	p := &program{name: hostile, text: hostile, obj: obj}
	seen := 0
	for _, page := range pages {
		_, body, header := open(t, p, page)
		seen += strings.Count(body, "alert(")
		for _, wrong := range []string{"<script>alert", "<img src=x", "javascript:", "style=", "onerror=alert(1)>"} {
			if strings.Contains(body, wrong) {
				t.Errorf("%q has %s", page, wrong)
			}
		}
		if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'; script-src 'self'; style-src 'self'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%q: the policy is %q", page, policy)
		}
		if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%q: the header is %v", page, header)
		}
	}
	if seen < 50 {
		t.Errorf("the hostile text is in %d places only; the test looks at too little", seen)
	}
}

// No page has a value of a Secret.
func TestConsole_SecretsAreHidden_M25(t *testing.T) {
	const canary = "hunter2-canary"
	p := &program{name: "website", text: "shop/web", obj: &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Data: map[string][]byte{"password": []byte(canary), "plain": []byte(canary)}, StringData: map[string]string{"token": canary, "plain": canary}, // not by its name alone
	}}
	shown := false
	for _, page := range append(pages, "controllers/website/key?key=shop/web") {
		_, body, _ := open(t, p, page)
		shown = shown || strings.Contains(body, "password: (hidden)")
		if strings.Contains(body, canary) || strings.Contains(body, "aHVudGVyMi1jYW5hcnk=") {
			t.Errorf("%q shows the value of a Secret", page)
		}
	}
	if !shown {
		t.Error("no page shows the Secret at all; the test looks at nothing")
	}
}

func TestConsole_PagesAndTheirStatus(t *testing.T) {
	p := &program{name: "website", text: "shop/web"}
	for page, want := range map[string]struct {
		code int
		has  string
	}{
		"":                             {200, "Wrong now"},
		"informers":                    {200, "Forbidden"},
		"controllers/website":          {200, "1 of 1 keys"},
		"controllers/website?filter=(": {400, "no regular expression"},
		"controllers/website/key?key=shop/web": {200, `<p><b>shop/web</b> <span class="soft">after the same error</span>; last: <b>shop/web</b> <span class="soft">after the same error</span> <span class="soft">3 causes</span></p>
<p><span class="outcome">shop/web</span> after 0: shop/web</p>`},
		"controllers/website/key?key=gone": {404, "no recorded run"},
		"search?q=shop":                    {200, "shop/web"},
		"static/console.js":                {200, "EventSource"},
		"static/idiomorph.min.js":          {200, "Idiomorph"},
		"static/layout.html":               {404, ""},
		"static/..%2fconsole.go":           {404, ""},
		"nothing":                          {404, ""},
	} {
		if code, body, _ := open(t, p, page); code != want.code || !strings.Contains(body, want.has) {
			t.Errorf("%q: %d, want %d and a page with %q:\n%s", page, code, want.code, want.has, body)
		}
	}
}

// stream opens the events of a page.
func stream(ctx context.Context, t *testing.T, handler http.Handler, page string) (events <-chan string, code func() int) {
	t.Helper()
	r, w := io.Pipe()
	rec := &streamed{header: http.Header{}, body: w}
	go func() {
		defer w.Close()
		req := httptest.NewRequestWithContext(ctx, http.MethodGet, console.Path+page, nil)
		req.Header.Set("Accept", "text/event-stream")
		handler.ServeHTTP(rec, req)
	}()
	out := make(chan string, 100)
	go func() {
		defer close(out)
		var event strings.Builder
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				event.WriteString(data + "\n")
			} else if event.Len() > 0 {
				out <- event.String()
				event.Reset()
			}
		}
	}()
	return out, func() int { return int(rec.code.Load()) }
}

type streamed struct {
	header http.Header
	body   io.Writer
	code   atomic.Int64
}

func (s *streamed) Header() http.Header         { return s.header }
func (s *streamed) Write(b []byte) (int, error) { return s.body.Write(b) }
func (s *streamed) WriteHeader(code int)        { s.code.Store(int64(code)) }
func (s *streamed) Flush()                      {}

// An open page gets its content again when that has changed, and only so many are open.
func TestConsole_OpenPagesFollow_M26(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := &program{name: "website", text: "shop/web"}
		handler := console.Handler(p)
		events, _ := stream(ctx, t, handler, "controllers/website?filter=(")
		synctest.Wait()
		if first := <-events; !strings.Contains(first, "no regular expression") || strings.Contains(first, "<body") {
			t.Errorf("the first event is %q, want the content of the page", first)
		}
		time.Sleep(time.Minute)
		if len(events) > 0 {
			t.Errorf("%d events although nothing has changed", len(events))
		}
		overview, _ := stream(ctx, t, handler, "")
		synctest.Wait()
		<-overview
		p.ended.Add(7000)
		time.Sleep(1500 * time.Millisecond)
		var second string
		for len(overview) > 0 {
			second = <-overview
		}
		if !strings.Contains(second, "7000") {
			t.Errorf("after 7000 reconciles the page is %q", second)
		}
		for range 14 {
			go func() {
				more, _ := stream(ctx, t, handler, "informers")
				for range more {
				}
			}()
		}
		synctest.Wait()
		refused, code := stream(ctx, t, handler, "")
		synctest.Wait()
		if _, more := <-refused; more || code() != http.StatusServiceUnavailable {
			t.Errorf("the 17th page is answered with %d, want 503", code())
		}
		bad, _ := stream(ctx, t, console.Handler(&program{name: "website", text: hostile}), "informers")
		synctest.Wait()
		if event := <-bad; !strings.Contains(event, "</section>") {
			t.Errorf("a carriage return ends the event: %q", event)
		}
		p.stops.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		for range events { // ends
		}
		for range overview {
		}
		cancel()
	})
}
