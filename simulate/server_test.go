// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

const mapsPath = "/api/v1/namespaces/ns/configmaps"

// ask sends one request and returns the answer, with its body decoded.
func ask(t *testing.T, w *fixture.World, method, path, media, body string) (*http.Response, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://simulated"+path, strings.NewReader(body))
	w.Must(err)
	req.Header.Set("Content-Type", media)
	transport := w.Network.Transport()
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(req)
	if err != nil {
		return nil, map[string]any{"error": err.Error()}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	w.Must(err)
	var decoded map[string]any
	if json.Unmarshal(text, &decoded) != nil {
		decoded = map[string]any{"text": string(text)}
	}
	return answer, decoded
}

// in is a field of a decoded answer: in(body, "metadata", "continue").
func in(fields map[string]any, path ...string) any {
	for _, name := range path[:len(path)-1] {
		fields, _ = fields[name].(map[string]any)
	}
	return fields[path[len(path)-1]]
}

func get(t *testing.T, w *fixture.World, path string) (*http.Response, map[string]any) {
	t.Helper()
	return ask(t, w, http.MethodGet, path, "", "")
}

func names(body map[string]any) (out []string) {
	items, _ := body["items"].([]any)
	for _, item := range items {
		fields := item.(map[string]any)
		out = append(out, fmt.Sprint(in(fields, "metadata", "name"), "=", in(fields, "data", "v")))
	}
	return out
}

func TestServer_PagesShowOneRevision_S2(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		w.Store(fixture.ConfigMap("a", "1"), fixture.ConfigMap("b", "1"), fixture.ConfigMap("c", "1"), fixture.ConfigMap("d", "1"), fixture.ConfigMap("e", "1"))
		var got []string
		versions, token := map[any]bool{}, ""
		for n := 0; n == 0 || token != ""; n++ {
			_, body := get(t, w, mapsPath+"?limit=2&continue="+token)
			got = append(got, names(body)...)
			versions[in(body, "metadata", "resourceVersion")] = true
			token, _ = in(body, "metadata", "continue").(string)
			w.Delete(fixture.ConfigMaps, "e")
			w.Store(fixture.ConfigMap("c", "2"), fixture.ConfigMap("e", "2"))
		}
		if want := "a=1 b=1 c=1 d=1 e=1"; strings.Join(got, " ") != want || len(versions) != 1 {
			t.Errorf("got %v at versions %v, want %s at one", got, versions, want)
		}
		_, body := get(t, w, mapsPath+"?limit=2")
		if left := in(body, "metadata", "remainingItemCount"); left != 3.0 {
			t.Errorf("remainingItemCount is %v, want 3", left)
		}
		token = in(body, "metadata", "continue").(string)
		w.Compact()
		w.Store(fixture.ConfigMap("f", "1"))
		w.Compact()
		if answer, body := get(t, w, mapsPath+"?limit=2&continue="+token); answer.StatusCode != 410 || body["reason"] != "Expired" {
			t.Errorf("got %d %v for the token of a compacted version, want 410 Expired", answer.StatusCode, body)
		}
	})
}

func TestServer_VersionsOfReads_S4(t *testing.T) {
	for _, c := range []struct {
		query  string
		status int
		reason string
		after  time.Duration
	}{
		{"", 200, "", 0},
		{"?resourceVersion=0", 200, "", 0},
		{"?resourceVersion=3", 200, "", 0},
		{"?resourceVersion=3&resourceVersionMatch=NotOlderThan", 200, "", 0},
		{"?resourceVersion=4&resourceVersionMatch=Exact", 200, "", 0},
		{"?resourceVersion=2&resourceVersionMatch=Exact", 410, "Expired", 0},
		{"?resourceVersion=99", 504, "Timeout", 3 * time.Second},
		{"?resourceVersion=many", 400, "BadRequest", 0},
		{"?resourceVersionMatch=Exact", 422, "Invalid", 0},
		{"?resourceVersion=3&resourceVersionMatch=Some", 422, "Invalid", 0},
		{"?limit=many", 400, "BadRequest", 0},
		{"?continue=nonsense", 400, "BadRequest", 0},
		{"?labelSelector=a+b", 400, "BadRequest", 0},
		{"?fieldSelector=data.v%3D1", 400, "BadRequest", 0},
		{"?fieldSelector=metadata.name%3Da", 200, "", 0},
		{"?watch=true&sendInitialEvents=true", 422, "Invalid", 0},
	} {
		fixture.Run(t, func(t *testing.T, w *fixture.World) {
			w.Store(fixture.ConfigMap("a", "1"), fixture.ConfigMap("a", "2"))
			w.Compact()
			w.Store(fixture.ConfigMap("a", "3"))
			begin := time.Now()
			answer, body := get(t, w, mapsPath+c.query)
			if reason, _ := body["reason"].(string); answer.StatusCode != c.status || reason != c.reason || time.Since(begin) != c.after {
				t.Errorf("%q: got %d %q after %s, want %d %q after %s: %v", c.query, answer.StatusCode, reason, time.Since(begin), c.status, c.reason, c.after, body)
			}
			if c.status == 504 {
				if answer.Header.Get("Retry-After") != "1" || !strings.Contains(fmt.Sprint(body["details"]), "ResourceVersionTooLarge") {
					t.Errorf("%q: Retry-After %q, details %v; want 1 and the cause ResourceVersionTooLarge", c.query, answer.Header.Get("Retry-After"), body["details"])
				}
			}
		})
	}
}

// frames reads a watch until it ends, or d has passed, and is each frame as
// "ADDED a=1@5".
func frames(t *testing.T, w *fixture.World, query string, d time.Duration, meanwhile func()) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://simulated"+mapsPath+"?watch=true&"+query, nil)
	w.Must(err)
	transport := w.Network.Transport()
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(req)
	w.Must(err)
	defer answer.Body.Close()
	if meanwhile != nil {
		synctest.Wait()
		meanwhile()
	}
	var out []string
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		var event struct {
			Type   string
			Object map[string]any
		}
		w.Must(json.Unmarshal(lines.Bytes(), &event))
		text := event.Type
		if name := in(event.Object, "metadata", "name"); name != nil {
			text += fmt.Sprintf(" %v=%v", name, in(event.Object, "data", "v"))
		}
		if event.Object["code"] != nil {
			text += fmt.Sprint(" ", event.Object["code"])
		}
		if v := in(event.Object, "metadata", "resourceVersion"); v != nil {
			text += fmt.Sprint("@", v)
		}
		if in(event.Object, "metadata", "annotations", metav1.InitialEventsAnnotationKey) == "true" {
			text += " end"
		}
		out = append(out, text)
	}
	if lines.Err() == nil {
		out = append(out, "EOF")
	}
	return strings.Join(out, ", ")
}

func TestServer_Watches_S1(t *testing.T) {
	for _, c := range []struct {
		name, query string
		lasts       time.Duration
		want        string
	}{
		{"from nothing", "", time.Minute, "ADDED a=2@3, ADDED b=1@4, MODIFIED a=3@6, DELETED b=1@7, ADDED b=2@8"},
		{"from 0", "resourceVersion=0", time.Minute, "ADDED a=2@3, ADDED b=1@4, MODIFIED a=3@6, DELETED b=1@7, ADDED b=2@8"},
		{"from a version", "resourceVersion=3", time.Minute, "ADDED b=1@4, MODIFIED a=3@6, DELETED b=1@7, ADDED b=2@8"},
		{"from the future", "resourceVersion=7", time.Minute, "ADDED b=2@8"},
		{"too old", "resourceVersion=1", time.Minute, "ERROR 410, EOF"},
		{"streaming list", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", 50 * time.Second,
			"ADDED a=2@3, ADDED b=1@4, BOOKMARK@5 end, MODIFIED a=3@6, DELETED b=1@7, ADDED b=2@8"},
		{"streaming list without bookmarks", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 50 * time.Second,
			"ADDED a=2@3, ADDED b=1@4, MODIFIED a=3@6, DELETED b=1@7, ADDED b=2@8"},
		{"bookmarks and timeout", "resourceVersion=8&allowWatchBookmarks=true&timeoutSeconds=130", time.Hour, "BOOKMARK@8, BOOKMARK@8, BOOKMARK@8, EOF"},
		{"one name", "fieldSelector=metadata.name%3Da", time.Minute, "ADDED a=2@3, MODIFIED a=3@6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fixture.Run(t, func(t *testing.T, w *fixture.World) {
				w.Store(fixture.ConfigMap("a", "1"))
				w.Compact()
				w.Store(fixture.ConfigMap("a", "2"), fixture.ConfigMap("b", "1"), fixture.NewWidget("w", "1"))
				got := frames(t, w, c.query, c.lasts, func() {
					w.Store(fixture.ConfigMap("a", "3"))
					w.Delete(fixture.ConfigMaps, "b")
					w.Store(fixture.ConfigMap("b", "2"))
				})
				if got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			})
		})
	}
}

func TestServer_StreamingListFromTheFutureIsRefusedAfterAWhile_S4(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		begin := time.Now()
		got := frames(t, w, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99", time.Minute, nil)
		if got != "ERROR 504, EOF" || time.Since(begin) != 3*time.Second {
			t.Errorf("got %s after %s, want ERROR 504, EOF after 3s", got, time.Since(begin))
		}
	})
}

// The server gives the metadata alone to who asks for it, in both forms, also
// of kinds that have no protobuf.
func TestServer_MetadataAlone_S6(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		labelled := fixture.ConfigMap("a", "1")
		labelled.Labels = map[string]string{"v": "1"}
		w.Store(labelled, fixture.NewWidget("a", "1"))
		client := &http.Client{Transport: w.Config.Transport}
		for _, path := range []string{"/api/v1/namespaces/ns/configmaps", "/apis/test.example.com/v1/namespaces/ns/widgets"} {
			for _, c := range []struct{ accept, as, suffix, want string }{
				{"application/json", "PartialObjectMetadataList", "", `"kind":"PartialObjectMetadataList"`},
				{"application/json", "PartialObjectMetadata", "/a", `"kind":"PartialObjectMetadata"`},
				{"application/json", "PartialObjectMetadata", "?watch=true&timeoutSeconds=1", `"kind":"PartialObjectMetadata"`},
				{"application/vnd.kubernetes.protobuf", "PartialObjectMetadataList", "", "PartialObjectMetadataList"},
				{"application/vnd.kubernetes.protobuf", "PartialObjectMetadata", "/a", "PartialObjectMetadata"},
				{"application/vnd.kubernetes.protobuf", "PartialObjectMetadata", "?watch=true&timeoutSeconds=1", "PartialObjectMetadata"},
			} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.Config.Host+path+c.suffix, nil)
				w.Must(err)
				req.Header.Set("Accept", fmt.Sprintf("%s;as=%s;g=meta.k8s.io;v=v1,application/json", c.accept, c.as))
				answer, err := client.Do(req)
				w.Must(err)
				body, err := io.ReadAll(answer.Body)
				w.Must(err)
				w.Must(answer.Body.Close())
				if media := answer.Header.Get("Content-Type"); !strings.HasPrefix(media, c.accept) || !strings.Contains(string(body), c.want) {
					t.Errorf("%s%s as %s %s: got %s %q, want %s", path, c.suffix, c.accept, c.as, media, body, c.want)
				}
				if strings.Contains(string(body), `"spec"`) || strings.Contains(string(body), `"data"`) {
					t.Errorf("%s%s: got more than metadata: %q", path, c.suffix, body)
				}
			}
		}
	})
}

func TestServer_LeavingASelectionIsADeletion_S3(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		labelled := func(value, label string) *corev1.ConfigMap {
			cm := fixture.ConfigMap("a", value)
			cm.Labels = map[string]string{"in": label}
			return cm
		}
		got := frames(t, w, "labelSelector=in%3Dyes", time.Minute, func() {
			w.Store(labelled("1", "no"), labelled("2", "yes"), labelled("3", "yes"), labelled("4", "no"), labelled("5", "no"))
			w.Delete(fixture.ConfigMaps, "a")
		})
		if want := "ADDED a=2@3, MODIFIED a=3@4, DELETED a=3@5"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestServer_Writes(t *testing.T) {
	const js, merge = "application/json", "application/merge-patch+json"
	finalized := `{"metadata":{"name":"f","finalizers":["x/y"]}}`
	for _, c := range []struct {
		name, method, path, media, body string
		status                          int
		want                            string // in the answer
	}{
		{"create", "POST", "", js, `{"kind":"ConfigMap","metadata":{"name":"b"}}`, 201, `"resourceVersion":"4"`},
		{"create again", "POST", "", js, `{"metadata":{"name":"a"}}`, 409, "AlreadyExists"},
		{"create by prefix", "POST", "", js, `{"metadata":{"generateName":"p-"}}`, 201, `"name":"p-f42j5"`},
		{"create without a name", "POST", "", js, `{}`, 422, "Required value"},
		{"create with a version", "POST", "", js, `{"metadata":{"name":"b","resourceVersion":"1"}}`, 500, "resourceVersion should not be set"},
		{"create of another kind", "POST", "", js, `{"kind":"Secret","metadata":{"name":"b"}}`, 400, "BadRequest"},
		{"create elsewhere", "POST", "", js, `{"metadata":{"name":"b","namespace":"other"}}`, 400, "BadRequest"},
		{"create nonsense", "POST", "", js, `{"metadata":`, 400, "BadRequest"},
		{"create too much", "POST", "", js, strings.Repeat(" ", 3<<20+1), 413, "limit is"},
		{"update", "PUT", "/a", js, `{"metadata":{"name":"a"},"data":{"v":"2"}}`, 200, `"resourceVersion":"4"`},
		{"update nothing", "PUT", "/a", js, `{"metadata":{"name":"a"},"data":{"v":"1"}}`, 200, `"resourceVersion":"2"`},
		{"update of the past", "PUT", "/a", js, `{"metadata":{"name":"a","resourceVersion":"1"}}`, 409, "the object has been modified"},
		{"update of another UID", "PUT", "/a", js, `{"metadata":{"name":"a","uid":"other"}}`, 409, "Precondition failed: UID"},
		{"update of a missing one", "PUT", "/z", js, `{"metadata":{"name":"z"}}`, 404, "NotFound"},
		{"update of another name", "PUT", "/a", js, `{"metadata":{"name":"z"}}`, 400, "BadRequest"},
		{"patch", "PATCH", "/a", merge, `{"data":{"v":null,"w":"1"}}`, 200, `"data":{"w":"1"}`},
		{"patch of the past", "PATCH", "/a", merge, `{"metadata":{"resourceVersion":"1"}}`, 409, "Conflict"},
		{"strategic patch", "PATCH", "/a", "application/strategic-merge-patch+json", `{"data":{"w":"1"}}`, 200, `"data":{"v":"1","w":"1"}`},
		{"delete", "DELETE", "/a", js, "", 200, `"status":"Success"`},
		{"delete another UID", "DELETE", "/a", js, `{"preconditions":{"uid":"other"}}`, 409, "the UID in the precondition (other)"},
		{"delete of a missing one", "DELETE", "/z", js, "", 404, "NotFound"},
		{"delete what has a finalizer", "DELETE", "/f", js, "", 200, `"deletionTimestamp"`},
		{"get of a missing one", "GET", "/z", "", "", 404, `configmaps \"z\" not found`},
		{"another method", "OPTIONS", "/a", "", "", 405, "MethodNotAllowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fixture.Run(t, func(t *testing.T, w *fixture.World) {
				w.Store(fixture.ConfigMap("a", "1"))
				ask(t, w, "POST", mapsPath, js, finalized)
				before := w.Revision()
				answer, body := ask(t, w, c.method, mapsPath+c.path, c.media, c.body)
				text, err := json.Marshal(body)
				w.Must(err)
				if answer.StatusCode != c.status || !strings.Contains(string(text), c.want) {
					t.Errorf("got %d %s, want %d with %s", answer.StatusCode, text, c.status, c.want)
				}
				if c.status >= 400 && w.Revision() != before {
					t.Errorf("a refused write moved the revision from %d to %d", before, w.Revision())
				}
			})
		})
	}
}

func TestServer_LastFinalizerEndsTheObject(t *testing.T) {
	const js = "application/json"
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		ask(t, w, "POST", mapsPath, js, `{"metadata":{"name":"f","finalizers":["x/y"]}}`)
		ask(t, w, "DELETE", mapsPath+"/f", js, "")
		marked := w.Revision()
		if ask(t, w, "DELETE", mapsPath+"/f", js, ""); w.Revision() != marked {
			t.Errorf("a second delete is a write")
		}
		if answer, body := ask(t, w, "PUT", mapsPath+"/f", js, `{"metadata":{"name":"f","finalizers":["x/y","z/z"]}}`); answer.StatusCode != 422 {
			t.Errorf("got %d %v, want 422: no finalizer is added to what is being deleted", answer.StatusCode, body)
		}
		answer, body := ask(t, w, "PUT", mapsPath+"/f", js, `{"metadata":{"name":"f"}}`)
		if answer.StatusCode != 200 || in(body, "metadata", "resourceVersion") != fmt.Sprint(marked) {
			t.Errorf("got %d %v, want 200 with the version %d of before", answer.StatusCode, body, marked)
		}
		if answer, _ := get(t, w, mapsPath+"/f"); answer.StatusCode != 404 || w.Revision() != marked+1 {
			t.Errorf("got %d at %d, want 404 at %d", answer.StatusCode, w.Revision(), marked+1)
		}
	})
}

// The answer to a lost write does not come, and the write stands.
func TestServer_LostResponseIsOfAStoredWrite(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		w.LoseResponse(1)
		answer, body := ask(t, w, "POST", mapsPath, "application/json", `{"metadata":{"name":"a"}}`)
		if answer != nil {
			t.Errorf("got %d %v, want no answer", answer.StatusCode, body)
		}
		if len(w.Objects(fixture.ConfigMaps)) != 1 {
			t.Errorf("the write is lost too")
		}
	})
}

// client-go is a guest like any other: discovery, and both encodings.
func TestServer_ClientGoFindsItsWay_S6(t *testing.T) {
	for _, media := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		fixture.Run(t, func(t *testing.T, w *fixture.World) {
			transport := w.Network.Transport()
			defer transport.CloseIdleConnections()
			cfg := &rest.Config{Host: "http://simulated", Transport: transport, ContentConfig: rest.ContentConfig{ContentType: media}, QPS: -1}
			client, err := kubernetes.NewForConfig(cfg)
			w.Must(err)
			api := client.CoreV1().ConfigMaps("ns")
			made, err := api.Create(t.Context(), fixture.ConfigMap("a", "1"), metav1.CreateOptions{})
			w.Must(err)
			watch, err := api.Watch(t.Context(), metav1.ListOptions{ResourceVersion: made.ResourceVersion})
			w.Must(err)
			defer watch.Stop()
			made.Data["v"] = "2"
			_, err = api.Update(t.Context(), made, metav1.UpdateOptions{})
			w.Must(err)
			if _, err = api.Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("%s: got %v, want a conflict", media, err)
			}
			event := <-watch.ResultChan()
			if cm, ok := event.Object.(*corev1.ConfigMap); !ok || cm.Data["v"] != "2" || event.Type != "MODIFIED" {
				t.Errorf("%s: watched %s %v, want a=2", media, event.Type, event.Object)
			}
			list, err := api.List(t.Context(), metav1.ListOptions{})
			w.Must(err)
			if len(list.Items) != 1 || list.Items[0].Data["v"] != "2" || list.ResourceVersion == "" {
				t.Errorf("%s: listed %v, want a=2", media, list)
			}
			w.Must(api.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID}}))
			if _, err = api.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s: got %v, want not found", media, err)
			}
			found, err := discovery.ServerPreferredResources(client.Discovery())
			w.Must(err)
			if !slices.ContainsFunc(found, func(l *metav1.APIResourceList) bool { return l.GroupVersion == "test.example.com/v1" }) {
				t.Errorf("%s: the widgets are not discovered", media)
			}
		})
	}
}

func TestServer_WhatIsNotServedIsPlainText(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		for _, path := range []string{"/apis/none/v1", "/apis/none/v1/things", "/nothing", "/apis/test.example.com/v1/things"} {
			answer, body := get(t, w, path)
			if answer.StatusCode != 404 || body["text"] != "404 page not found\n" {
				t.Errorf("%s: got %d %v, want 404 page not found", path, answer.StatusCode, body)
			}
		}
	})
}

// Whatever comes in, the server answers.
func FuzzServer_Body(f *testing.F) {
	f.Add("POST", "application/json", []byte(`{"metadata":{"name":"b"}}`))
	f.Add("PATCH", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":[1],"labels":{"a":{}}}}`))
	f.Add("PUT", "application/json", []byte(`{"metadata":"a"}`))
	f.Add("POST", "application/vnd.kubernetes.protobuf", []byte("k8s\x00\x0a\x02"))
	f.Fuzz(func(t *testing.T, method, media string, body []byte) {
		w := fixture.New(t)
		_, err := w.Put(fixture.ConfigMap("a", "1"))
		w.Must(err)
		path := mapsPath
		if method != http.MethodPost {
			path += "/a"
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://simulated"+path, bytes.NewReader(body))
		if err != nil {
			t.Skip()
		}
		r.Header.Set("Content-Type", media)
		answer := &answer{header: http.Header{}}
		w.ServeHTTP(answer, r)
		if answer.code < 200 || answer.code == 500 {
			t.Errorf("got %d for %q", answer.code, body)
		}
		for _, o := range w.Objects(fixture.ConfigMaps) {
			if o.GetName() == "" || o.GetResourceVersion() == "" || o.GetUID() == types.UID("") {
				t.Errorf("stored without name, version or UID: %v", o)
			}
		}
	})
}

// answer keeps an answer's code.
type answer struct {
	header http.Header
	code   int
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(p []byte) (int, error) { return len(p), nil }

// A server that runs for weeks remembers its last requests, and not all of them.
func TestServer_RemembersItsLastRequests(t *testing.T) {
	s := simulate.New(simulate.Options{})
	ask := func(path string) {
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	ask("/first")
	for range 100_000 {
		ask("/version")
	}
	ask("/last")
	got := s.Served()
	if len(got) != 100_000 || got[0].Path != "/version" || got[0].Status != 200 || got[len(got)-1].Path != "/last" || got[len(got)-1].Status != 404 {
		t.Errorf("got %d requests from %+v to %+v, want the last 100,000 with their answers", len(got), got[0], got[len(got)-1])
	}
}
