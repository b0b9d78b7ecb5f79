// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/kube"
)

const canary = "c4n4ry"

func decode(_ string, body []byte) (tree any, err error) { return tree, json.Unmarshal(body, &tree) }

var secretKind, configMapKind = corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ConfigMap")

func secret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", ResourceVersion: "7", Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": canary,
		}},
		Data: map[string][]byte{"password": []byte(canary)}, StringData: map[string]string{"x": canary}, Type: "Opaque",
	}
}

// written returns what a Window that does something becomes.
func written(t *testing.T, opts recording.Options, do func(*recording.Recorder, *recording.Window)) (*recording.Bundle, []byte) {
	t.Helper()
	var r recording.Recorder
	opts.Decode = decode
	w, err := r.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	do(&r, w)
	if opts.Limit == 0 {
		r.Stop() // else it ends by itself
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // in a bubble a moment
	defer cancel()
	var out bytes.Buffer
	if err := w.Write(ctx, &out); err != nil {
		t.Fatal(err)
	}
	if r.Window() != nil {
		t.Error("the Window is open after it was written")
	}
	b, err := recording.Read(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return b, out.Bytes()
}

func yields(objects ...kube.Object) func(func(kube.Object) bool) { return slices.Values(objects) }

func opened(obj kube.Object) func() (kube.Object, error) {
	return func() (kube.Object, error) { return obj, nil }
}

func body(resource, sub, text string) recording.Content {
	return recording.Content{Resource: schema.GroupResource{Resource: resource}, Subresource: sub, Type: "application/json", Data: []byte(text)}
}

// Nothing that must be hidden is in a bundle, wherever it was.
func TestWrite_HidesWhatIsConfidential_M28(t *testing.T) {
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0." + canary
	opts := recording.Options{Redact: []string{"ConfigMap:data.pin", "Website.web.example.com:spec.users.pin", "tickets.example.com:spec"}}
	site := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "site"}, "spec": map[string]any{"users": []any{map[string]any{"name": "ada", "pin": canary}, map[string]any{"name": "bob"}}},
	}}
	b, _ := written(t, opts, func(_ *recording.Recorder, w *recording.Window) {
		secrets := w.Informer(recording.Source{Kind: secretKind, Resource: "secrets", Namespaced: true, Version: "7"}, yields(secret()))
		secrets.Event("MODIFIED", opened(secret()), "8", 100)
		maps := w.Informer(recording.Source{Kind: configMapKind, Resource: "configmaps"}, yields(&corev1.ConfigMap{Data: map[string]string{"pin": canary, "shown": "yes"}}))
		maps.Event("ADDED", opened(&corev1.ConfigMap{Data: map[string]string{"kubeconfig": "client-key-data: " + canary, "t": jwt}}), "9", 100)
		w.Informer(recording.Source{Kind: schema.GroupVersionKind{Group: "web.example.com", Version: "v1", Kind: "Website"}}, yields(site))
		run := w.Begin("c", "shop/db", "updated: Bearer "+canary+canary)
		for _, c := range []recording.Content{
			body("secrets", "", `{"apiVersion":"v1","kind":"Secret","stringData":{"p":"c4n4ry"}}`),
			body("secrets", "", `{"data":{"p":"YzRuNHJ5c4n4ry"}}`), // a merge patch
			body("secrets", "", `[{"op":"add","path":"/data/p","value":"c4n4ry"}]`),
			body("secrets", "", `{"apiVersion":"v1","kind":"SecretList","items":[{"data":{"p":"c4n4ry"}}]}`),
			body("secrets", "", `{"apiVersion":"v1","kind":"Status","message":"invalid value c4n4ry","details":{"causes":[{"message":"c4n4ry"}]}}`),
			body("serviceaccounts", "token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","status":{"token":"c4n4ry"}}`),
			{Resource: schema.GroupResource{Group: "authentication.k8s.io", Resource: "tokenreviews"}, Data: []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"c4n4ry"}}`)},
			{Resource: schema.GroupResource{Group: "example.com", Resource: "tickets"}, Data: []byte(`{"spec":{"pin":"c4n4ry"}}`)},
			{Resource: schema.GroupResource{Group: "example.com", Resource: "tickets"}, Data: []byte(`[{"op":"test","path":"/spec/pin","value":"c4n4ry"}]`)},
			{Data: []byte("c4n4ry is not JSON"), Type: "text/plain"},
			{Data: []byte(`"c4n4ry"`)},
		} {
			n := run.Request(http.MethodPatch, "/api/v1/x", c)
			run.Answer(n, 200, "", c, errors.New("https://ada:"+canary+"@example.com failed"))
		}
		run.End("error", 0, "token="+canary)
	})
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if i := bytes.Index(text, []byte(canary)); i >= 0 {
		t.Errorf("a bundle has what is confidential: …%s…", text[max(0, i-200):i+20])
	}
	for _, shown := range []string{`"shown":"yes"`, `"name":"ada"`, `"type":"Opaque"`, `"name":"db"`} {
		if !bytes.Contains(text, []byte(shown)) {
			t.Errorf("the bundle lacks %s", shown)
		}
	}
}

// What is read is what was written, in its order.
func TestRead_HasTheEntriesInTheirOrder(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	b, _ := written(t, recording.Options{}, func(r *recording.Recorder, w *recording.Window) {
		if _, err := r.Open(recording.Options{}); !errors.Is(err, recording.ErrOpen) {
			t.Errorf("a second Window opens: %v", err)
		}
		l := w.Informer(recording.Source{Kind: configMapKind}, yields(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m", ResourceVersion: "3"}}))
		l.Learned(recording.Source{Kind: configMapKind, Resource: "configmaps", Namespaced: true})
		l.Learned(recording.Source{Kind: configMapKind, Resource: "again"})
		run := w.Begin("c", "k", "added")
		run.Clock(at)
		run.Chance(0.25)
		n := run.Request("GET", "/api/v1/configmaps?limit=1", recording.Content{})
		l.Event("DELETED", opened(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m", ResourceVersion: "3"}}), "5", 1)
		l.Event("ADDED", func() (kube.Object, error) { return nil, errors.New("corrupt") }, "6", 1)
		l.Bookmark("9")
		run.Answer(n, 0, "", recording.Content{Missing: "it is a stream"}, errors.New("reset"))
		run.End("done", 0, "")
	})
	var is []string
	for _, e := range b.Entries {
		is = append(is, strings.TrimSpace(strings.Join([]string{string(e.What), e.Type, e.Version, e.Resource, e.Controller, e.Method, e.Error, e.Body.Missing}, " ")))
	}
	want := []string{
		"informer", "object", "informer   configmaps", "begin    c", "clock", "chance", "request     GET", "event DELETED 5", "event ADDED 6",
		"event BOOKMARK 9", "answer      reset it is a stream", "end",
	}
	if !slices.Equal(is, want) {
		t.Errorf("the entries are\n%q\nwant\n%q", is, want)
	}
	if !b.Entries[4].Time.Equal(at) || b.Entries[5].Chance != 0.25 || b.End == nil || !strings.Contains(string(b.Entries[7].Object), `"resourceVersion":"5"`) {
		t.Errorf("the entries are %+v, the end %+v", b.Entries, b.End)
	}
}

// A Window ends at its limit, and when its reader is slower than the program.
func TestWindow_IsBounded_M29(t *testing.T) { synctest.Test(t, windowIsBounded) }

func windowIsBounded(t *testing.T) {
	large := body("configmaps", "", `{"data":{"a":"`+strings.Repeat("x", 1<<20)+`"}}`)
	fill := func(n int) func(*recording.Recorder, *recording.Window) {
		return func(_ *recording.Recorder, w *recording.Window) {
			run := w.Begin("c", "k", "")
			for range n {
				run.Request("POST", "/api/v1/configmaps", large)
			}
		}
	}
	b, _ := written(t, recording.Options{Limit: 2 << 20}, fill(10))
	if b.End == nil || !strings.Contains(b.End.Reason, "reached its limit of 2 MiB") || len(b.Entries) != 3 {
		t.Errorf("a Window of 2 MiB has %d entries and the end %+v, want 3 entries and why it ends", len(b.Entries), b.End)
	}
	b, _ = written(t, recording.Options{}, fill(100))
	if b.End == nil || !strings.Contains(b.End.Reason, "too slow") || len(b.Entries) > 66 {
		t.Errorf("a Window without a reader has %d entries and the end %+v, want 64 MiB and why it ends", len(b.Entries), b.End)
	}
}

// What was written before the end of a program can be read.
func TestRead_CutOff_M30(t *testing.T) {
	whole, raw := written(t, recording.Options{}, func(_ *recording.Recorder, w *recording.Window) {
		run := w.Begin("c", "k", "")
		for range 3 {
			run.Request("POST", "/api/v1/configmaps", body("configmaps", "", `{"data":{"a":"`+strings.Repeat("x", 1<<20)+`"}}`))
		}
	})
	for cut := 0; cut < len(raw); cut += 1 + len(raw)/60 {
		b, err := recording.Read(bytes.NewReader(raw[:cut]))
		switch {
		case err != nil && !strings.Contains(err.Error(), "it ends before its head"):
			t.Fatalf("cut at %d of %d: %v", cut, len(raw), err)
		case err == nil && (b.End != nil && cut < len(raw)-1024 || len(b.Entries) > len(whole.Entries)):
			t.Fatalf("cut at %d of %d: %d entries, the end %+v", cut, len(raw), len(b.Entries), b.End)
		}
	}
	for at := 12; at < len(raw); at += 1 + len(raw)/60 { // no damage panics
		damaged := bytes.Clone(raw)
		damaged[at] ^= 0xff
		_, _ = recording.Read(bytes.NewReader(damaged))
	}
}

func TestOpen_Misuse(t *testing.T) {
	var r recording.Recorder
	for _, opts := range []recording.Options{
		{Limit: 1}, {Redact: []string{"ConfigMap"}}, {Redact: []string{":data"}}, {Redact: []string{"ConfigMap:"}}, {Redact: []string{"ConfigMap:data..x"}},
	} {
		if _, err := r.Open(opts); err == nil || r.Window() != nil {
			t.Errorf("Open(%+v) = %v, want an error", opts, err)
		}
	}
	r.Stop()
	if _, err := r.Open(recording.Options{}); !errors.Is(err, recording.ErrStopped) {
		t.Errorf("Open after Stop: %v", err)
	}
}

// An informer that begins later is in the recording, and one that has ended is not asked again.
func TestJoin_WhileAWindowIsOpen(t *testing.T) { synctest.Test(t, joinWhileAWindowIsOpen) }

func joinWhileAWindowIsOpen(t *testing.T) {
	var r recording.Recorder
	var calls []string
	note := func(name string) func(*recording.Window) {
		return func(w *recording.Window) {
			if calls = append(calls, name+map[bool]string{true: " ends", false: " begins"}[w == nil]); w != nil && r.Window() != nil && name == "first" {
				t.Error("the Window is open before the states are in it")
			}
		}
	}
	defer r.Join(note("first"))()
	leave := r.Join(note("gone"))
	leave()
	w, err := r.Open(recording.Options{Decode: decode})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Join(note("second"))()
	r.Stop()
	if err := w.Write(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
	slices.Sort(calls)
	if want := []string{"first begins", "first ends", "second begins", "second ends"}; !slices.Equal(calls, want) {
		t.Errorf("the informers are asked %q, want %q", calls, want)
	}
	if err := w.Write(t.Context(), io.Discard); err != nil { // harmless
		t.Error(err)
	}
	(*recording.Recorder)(nil).Join(nil)()
	if (*recording.Recorder)(nil).Window() != nil || recording.Of(t.Context()) != nil {
		t.Error("there is a Window without a Recorder")
	}
}

func TestHandler_AnswersWithARecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recording.Recorder
		h := r.Handler(recording.Options{Decode: decode, Redact: []string{"ConfigMap:data"}})
		ask := func(query string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+query, nil))
			return w
		}
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- ask("seconds=20&redact=Pod:spec") }()
		time.Sleep(time.Second)
		if w := ask("seconds=1"); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "is being made already") {
			t.Errorf("a second recording is answered with %d %s", w.Code, w.Body)
		}
		r.Window().Begin("c", "k", "").End("done", 0, "")
		b, err := recording.Read((<-first).Body)
		if err != nil || len(b.Entries) != 2 || !slices.Equal(b.Redact, []string{"ConfigMap:data", "Pod:spec"}) || b.End.Reason != "its time is over" {
			t.Errorf("the recording is %+v, %v", b, err)
		}
		for _, query := range []string{"seconds=0", "seconds=x", "seconds=3601", "limit=1", "limit=x", "redact=x"} {
			if w := ask(query); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `{"error":"`) {
				t.Errorf("%s is answered with %d %s", query, w.Code, w.Body)
			}
		}
	})
}

// A Ring keeps the newest recordings, and that of a program that died.
func TestRing_KeepsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "made")
		var r recording.Recorder
		ring := recording.Ring{Dir: dir, Every: time.Minute, Keep: 3, Options: recording.Options{Decode: decode}}
		if err := ring.Misuse(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- ring.Run(ctx, &r, logr.Discard()) }()
		time.Sleep(5*time.Minute + time.Second)
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 4 || !strings.HasSuffix(files[3].Name(), ".tar.gz.part") || !strings.HasSuffix(files[2].Name(), "Z.tar.gz") {
			t.Errorf("after 5 minutes there are %v, %v; want the last 3, and one unfinished", files, err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, f := range files[1:3] {
			file, err := os.Open(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if b, err := recording.Read(file); err != nil || b.End == nil {
				t.Errorf("%s is %+v, %v", f.Name(), b, err)
			}
			_ = file.Close()
		}
		for _, bad := range []recording.Ring{{}, {Dir: "x", Every: time.Second}, {Dir: "x", Keep: -1}, {Dir: "x", Options: recording.Options{Limit: 1}}} {
			if bad.Misuse() == nil {
				t.Errorf("%+v is accepted", bad)
			}
		}
	})
}
