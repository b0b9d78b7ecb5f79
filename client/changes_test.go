// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

func readSite() *Website {
	site := website("prod", "web")
	site.UID, site.ResourceVersion, site.Generation = "u", "6", 1
	site.Labels = map[string]string{"a": "1"}
	site.Finalizers = []string{"example.com/a"}
	site.Status.Replicas = 1
	return site
}

func TestPatchChanges_SendsWhatDiffersAndNothingElse_C10(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*Website)
		opts   []client.Option
		want   []string // path and body of each request
	}{
		{"nothing", func(*Website) {}, nil, nil},
		{"what the server sets", func(s *Website) { s.ResourceVersion, s.Generation, s.ManagedFields = "9", 4, nil }, nil, nil},
		{"a field", func(s *Website) { s.Spec.Content = "bye" }, nil, []string{`web {"metadata":{"uid":"u"},"spec":{"content":"bye"}}`}},
		{"a label less", func(s *Website) { delete(s.Labels, "a") }, nil, []string{`web {"metadata":{"labels":null,"uid":"u"}}`}},
		{"a list", func(s *Website) { s.Finalizers = append(s.Finalizers, "example.com/b") }, nil,
			[]string{`web {"metadata":{"finalizers":["example.com/a","example.com/b"],"resourceVersion":"6","uid":"u"}}`}},
		{"a list less", func(s *Website) { s.Finalizers = nil }, nil, []string{`web {"metadata":{"finalizers":null,"resourceVersion":"6","uid":"u"}}`}},
		{"a field, with care", func(s *Website) { s.Spec.Content = "bye" }, []client.Option{client.Preconditions{ResourceVersion: "6"}},
			[]string{`web {"metadata":{"resourceVersion":"6","uid":"u"},"spec":{"content":"bye"}}`}},
		{"status", func(s *Website) { s.Status.Replicas = 2 }, nil, []string{`web/status {"metadata":{"uid":"u"},"status":{"replicas":2}}`}},
		{"both", func(s *Website) { s.Spec.Content, s.Status.Replicas = "bye", 2 }, nil,
			[]string{`web {"metadata":{"uid":"u"},"spec":{"content":"bye"}}`, `web/status {"metadata":{"uid":"u"},"status":{"replicas":2}}`}},
		{"both, with a list", func(s *Website) { s.Finalizers, s.Status.Replicas = nil, 2 }, nil,
			[]string{`web {"metadata":{"finalizers":null,"resourceVersion":"6","uid":"u"}}`, `web/status {"metadata":{"resourceVersion":"7","uid":"u"},"status":{"replicas":2}}`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			answer := reply{body: thing("example.com/v1", "Website", "", "")}
			r := &recorder{}
			c, s := scripted(t, client.Options{Observer: r}, answer, answer)
			from := readSite()
			to := kube.Copy(from)
			row.change(to)
			changed, err := c.PatchChanges(t.Context(), from, to, row.opts...)
			if err != nil || changed != (len(row.want) > 0) {
				t.Fatalf("got changed %v, %v", changed, err)
			}
			var got []string
			for _, sent := range s.requests() {
				got = append(got, strings.TrimPrefix(sent.path, "/apis/example.com/v1/namespaces/prod/websites/")+" "+sent.body)
			}
			if !reflect.DeepEqual(got, row.want) {
				t.Errorf("sent %q\nwant %q", got, row.want)
			}
			if !reflect.DeepEqual(from, readSite()) {
				t.Errorf("the object as it was read became %v; it may be a Lister's", from)
			}
			if changed && to.ResourceVersion != "7" {
				t.Errorf("the changed object is of version %q, want the answer's", to.ResourceVersion)
			}
			if told := len(r.take()); told != len(row.want) {
				t.Errorf("the observer was told of %d writes, want %d", told, len(row.want))
			}
		})
	}
}

// The server has no zeros of a status that was never written, but in the Go type they
// look as if they had been read.
func TestPatchChanges_FirstStatusIsSentWithItsZeros_C10(t *testing.T) {
	from := readSite()
	from.Status.Replicas = 0
	for _, row := range []struct {
		name   string
		change func(*Website)
		want   string
	}{
		{"first", func(s *Website) { s.Status.URL = "u" }, `{"metadata":{"resourceVersion":"6","uid":"u"},"status":{"replicas":0,"url":"u"}}`},
		{"still unsaid", func(s *Website) { s.Spec.Content = "bye" }, `{"metadata":{"uid":"u"},"spec":{"content":"bye"}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, s := scripted(t, client.Options{}, reply{body: thing("example.com/v1", "Website", "", "")})
			to := kube.Copy(from)
			row.change(to)
			if _, err := c.PatchChanges(t.Context(), from, to); err != nil {
				t.Fatal(err)
			}
			if sent := s.requests(); len(sent) != 1 || sent[0].body != row.want {
				t.Errorf("sent %v, want one request with %s", sent, row.want)
			}
		})
	}
}

func TestPatchChanges_OnAnErrorTheObjectIsAsItWas_C3(t *testing.T) {
	c, _ := scripted(t, client.Options{}, reply{body: thing("example.com/v1", "Website", "", "")}, status(409, "Conflict", "the object has been modified", ""))
	from := readSite()
	to := kube.Copy(from)
	to.Finalizers, to.Status.Replicas = nil, 2
	before := kube.Copy(to)
	_, err := c.PatchChanges(t.Context(), from, to)
	if conflict, is := errors.AsType[*client.ConflictError](err); !is || conflict.Version != 7 || !reflect.DeepEqual(to, before) {
		t.Errorf("got %v and %v, want a conflict about version 7 and the object untouched", err, to)
	}
}

func TestPatchChanges_RefusesWhatIsNoChangeOfOneObject_C5(t *testing.T) {
	c, s := scripted(t, client.Options{})
	unread, other := website("prod", "web"), readSite()
	other.Name = "other"
	for name, from := range map[string]kube.Object{
		"of one type":     configMap("prod", "web", nil),
		"not nil":         (*Website)(nil),
		"cannot be chang": other,
		"has no uid":      unread,
	} {
		if _, err := c.PatchChanges(t.Context(), from, readSite()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("from %v: got %v, want an error that says %q", from, err, name)
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

// FuzzPatchChanges_Merged_C10 applies the patch to the object that was read, as the
// server would, and expects the desired object.
func FuzzPatchChanges_Merged_C10(f *testing.F) {
	f.Add(`{"spec":{"a":1,"l":[1]}}`, `{"spec":{"a":2},"status":{"x":{"y":[]}}}`)
	f.Add(`{"status":{"x":1}}`, `{"data":null}`)
	f.Add(`{"spec":{"a":{"b":{}}}}`, `{"spec":{"a":{}}}`)
	f.Fuzz(func(t *testing.T, from, to string) {
		a, b := objectOf(from), objectOf(to)
		if a == nil || b == nil {
			t.Skip()
		}
		c, s := scripted(t, client.Options{}, reply{body: thing("example.com/v1", "Website", "", "")}, reply{body: thing("example.com/v1", "Website", "", "")})
		want, now := b.DeepCopy().Object, a.DeepCopy().Object
		changed, err := c.PatchChanges(t.Context(), a, b)
		if err != nil {
			t.Fatal(err)
		}
		if changed == reflect.DeepEqual(now, want) {
			t.Errorf("changed is %v for %v and %v", changed, now, want)
		}
		for _, sent := range s.requests() {
			var patch map[string]any
			if err := json.Unmarshal([]byte(sent.body), &patch); err != nil {
				t.Fatal(err)
			}
			status := strings.HasSuffix(sent.path, "/status")
			if _, has := patch["status"]; has != status || status && len(patch) != 2 {
				t.Errorf("sent %s to %s, want the status apart", sent.body, sent.path)
			}
			if _, guarded := patch["metadata"].(map[string]any)["resourceVersion"]; !guarded && strings.Contains(sent.body, "[") {
				t.Errorf("sent %s, a list, without the version that it builds on", sent.body)
			}
			delete(patch, "metadata")
			merge(now, patch)
		}
		if !reflect.DeepEqual(now, want) {
			t.Errorf("merged %v\nwant %v", now, want)
		}
	})
}

// objectOf returns a Website with the given fields beside its metadata; nil if they are
// no object, or hold a null, which a merge patch cannot express.
func objectOf(fields string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if json.Unmarshal([]byte(fields), &u.Object) != nil || u.Object == nil || strings.Contains(fields, "null") {
		return nil
	}
	site := readSite()
	u.Object["metadata"] = map[string]any{}
	u.SetGroupVersionKind(websiteKind)
	u.SetNamespace(site.Namespace)
	u.SetName(site.Name)
	u.SetUID(site.UID)
	u.SetResourceVersion(site.ResourceVersion)
	return u
}

// merge is RFC 7386.
func merge(into, patch map[string]any) {
	for name, value := range patch {
		inner, is := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case is:
			below, _ := into[name].(map[string]any)
			if below == nil {
				below = map[string]any{}
			}
			merge(below, inner)
			into[name] = below
		default:
			into[name] = value
		}
	}
}

func TestCreateOrUpdate(t *testing.T) {
	read := thing("v1", "ConfigMap", "", `"data":{"kept":"1"}`)
	mutated := map[string]string{"kept": "1", "new": "1"}
	for _, row := range []struct {
		name    string
		answers []reply
		mutate  func(*corev1.ConfigMap) error
		want    client.Outcome
		sent    string // of the last request
		err     string
	}{
		{"missing", []reply{status(404, "NotFound", "no", ""), {body: read}}, func(cm *corev1.ConfigMap) error { cm.Data = mutated; return nil }, client.Created, "POST", ""},
		{"changed", []reply{{body: read}, {body: read}}, func(cm *corev1.ConfigMap) error { cm.Data["new"] = "1"; return nil }, client.Updated, `PATCH {"data":{"new":"1"},"metadata":{"uid":"u"}}`, ""},
		{"the same", []reply{{body: read}}, func(cm *corev1.ConfigMap) error { cm.Data["kept"] = "1"; return nil }, client.Unchanged, "GET", ""},
		{"unreadable", []reply{status(403, "Forbidden", "no", "")}, func(*corev1.ConfigMap) error { return nil }, client.Unchanged, "GET", "no"},
		{"created by another", []reply{status(404, "NotFound", "no", ""), status(409, "AlreadyExists", "there", "")}, func(*corev1.ConfigMap) error { return nil }, client.Unchanged, "POST", "there"},
		{"mutate fails", []reply{{body: read}}, func(cm *corev1.ConfigMap) error { cm.Data["x"] = "y"; return errors.New("oh") }, client.Unchanged, "GET", "mutate: oh"},
		{"another name", []reply{{body: read}}, func(cm *corev1.ConfigMap) error { cm.Name = "other"; return nil }, client.Unchanged, "GET", "mutate changed the name"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, s := scripted(t, client.Options{}, row.answers...)
			cm := configMap("prod", "web", map[string]string{"mine": "1"})
			before := cm.DeepCopy()
			got, err := c.CreateOrUpdate(t.Context(), cm, func() error { return row.mutate(cm) })
			if got != row.want || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
				t.Errorf("got %s, %v, want %s, %q", got, err, row.want, row.err)
			}
			if err != nil && !reflect.DeepEqual(cm, before) {
				t.Errorf("after an error the object is %v, want it as it was", cm)
			}
			last := s.requests()[len(s.requests())-1]
			if !strings.HasPrefix(last.method+" "+last.body, row.sent) {
				t.Errorf("sent %s %s, want %s", last.method, last.body, row.sent)
			}
		})
	}
}

// A kind whose CustomResourceDefinition gains the status subresource while the client runs: the
// status is written nevertheless.
func TestPatchChanges_StatusSubresourceAppears_C10(t *testing.T) {
	typed := readSite()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	loose := &unstructured.Unstructured{Object: content}
	loose.SetGroupVersionKind(websiteKind)
	for _, from := range []kube.Object{typed, loose} {
		s := &script{answers: []reply{
			{body: thing("example.com/v1", "Website", "", `"status":{"replicas":1}`)}, // ignores the status
			{body: thing("example.com/v1", "Website", "", `"status":{"replicas":2}`)},
		}}
		served := strings.Replace(websiteDiscovery, `{"name":"websites/status"`, `{"name":"websites/other"`, 1)
		c, err := client.New(&rest.Config{Host: "http://api.test", Transport: discovering{s, &served}}, testScheme(t), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.PatchChanges(t.Context(), from, kube.Copy(from)); err != nil { // learns the kind
			t.Fatal(err)
		}
		served = websiteDiscovery
		to := kube.Copy(from)
		switch to := to.(type) {
		case *Website:
			to.Status.Replicas = 2
		case *unstructured.Unstructured:
			err = unstructured.SetNestedField(to.Object, int64(2), "status", "replicas")
		}
		if err != nil {
			t.Fatal(err)
		}
		changed, err := c.PatchChanges(t.Context(), from, to)
		if text, _ := json.Marshal(to); err != nil || !changed || !strings.Contains(string(text), `"replicas":2`) {
			t.Fatalf("%T: got %v, %v and %s, want the status written", to, changed, err, text)
		}
		if got := s.requests(); len(got) != 2 || !strings.HasSuffix(got[1].path, "/web/status") {
			t.Errorf("%T: sent %v, want the status to its subresource at last", to, got)
		}
	}
}

// A kind that loses its status subresource answers "not found", as for a missing object. After a
// minute that is not believed without discovery.
func TestPatchChanges_StatusSubresourceDisappears_C10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := status(404, "NotFound", `websites.example.com "web" not found`, `"name":"web"`)
		s, served := &script{answers: []reply{gone, gone, gone}}, websiteDiscovery
		c, err := client.New(&rest.Config{Host: "http://api.test", Transport: discovering{s, &served}}, testScheme(t), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		from := readSite()
		to := kube.Copy(from)
		to.Status.Replicas = 2
		if _, err := c.PatchChanges(t.Context(), from, to); !apierrors.IsNotFound(err) {
			t.Fatalf("got %v, want that the object is gone, as discovery has just listed the subresource", err)
		}
		served = strings.Replace(websiteDiscovery, `{"name":"websites/status"`, `{"name":"websites/other"`, 1)
		time.Sleep(time.Minute - 1)
		to = kube.Copy(from)
		to.Status.Replicas = 2
		if _, err := c.PatchChanges(t.Context(), from, to); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want that the object is gone: discovery is not asked within a minute", err)
		}
		time.Sleep(time.Nanosecond)
		to = kube.Copy(from)
		to.Status.Replicas = 2
		if _, err := c.PatchChanges(t.Context(), from, to); err == nil || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `no subresource "status" of Website`) {
			t.Errorf("got %v, want that the subresource is gone", err)
		}
	})
}

// discovering is a server whose discovery of example.com/v1 changes.
type discovering struct {
	*script
	served *string
}

func (d discovering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/apis/example.com/v1" {
		return respond(r, reply{body: *d.served}), nil
	}
	return d.script.RoundTrip(r)
}
