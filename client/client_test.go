// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

func TestClient_EachGetAsksTheServer_C1(t *testing.T) {
	answer := reply{body: thing("v1", "ConfigMap", "", "")}
	c, s := scripted(t, client.Options{}, answer, answer, answer)
	for range 3 {
		if err := c.Get(t.Context(), kube.Key{Namespace: "prod", Name: "web"}, &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.requests()); n != 3 {
		t.Errorf("3 reads made %d requests, want 3: there is no hidden cache", n)
	}
}

func TestClient_ObjectBecomesTheAnswer_C3(t *testing.T) {
	answer := thing("v1", "ConfigMap", "", `"data":{"k":"server"}`)
	var want corev1.ConfigMap
	if err := json.Unmarshal([]byte(answer), &want); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(*client.Client, *corev1.ConfigMap) error{
		"get": func(c *client.Client, obj *corev1.ConfigMap) error {
			return c.Get(t.Context(), kube.KeyOf(obj), obj)
		},
		"create": func(c *client.Client, obj *corev1.ConfigMap) error { return c.Create(t.Context(), obj) },
		"update": func(c *client.Client, obj *corev1.ConfigMap) error { return c.Update(t.Context(), obj) },
		"apply":  func(c *client.Client, obj *corev1.ConfigMap) error { return c.Apply(t.Context(), obj) },
		"patch": func(c *client.Client, obj *corev1.ConfigMap) error {
			return c.Patch(t.Context(), obj, client.MergePatch([]byte(`{}`)))
		},
	} {
		c, _ := scripted(t, client.Options{FieldOwner: "test"}, reply{body: answer}, status(500, "InternalError", "no", ""), reply{body: `{"kind":"ConfigMap","apiVersion":"v1","data":7}`})
		obj := asRead(configMap("prod", "web", map[string]string{"left": "over"}))
		obj.Labels = map[string]string{"left": "over"}
		if err := call(c, obj); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(obj, &want) {
			t.Errorf("%s made the object %v\nwant what the server answered, %v", name, obj, &want)
		}
		for _, what := range []string{"a refusal", "an answer that cannot be read"} {
			obj := asRead(configMap("prod", "web", map[string]string{"k": "mine"}))
			before := obj.DeepCopy()
			if err := call(c, obj); err == nil || !reflect.DeepEqual(obj, before) {
				t.Errorf("%s: after %s (%v) the object is %v, want it as it was", name, what, err, obj)
			}
		}
	}
}

func TestClient_DeleteAndSetFinalizersOnlyReadTheObject_C3(t *testing.T) {
	answer := reply{body: thing("v1", "ConfigMap", dying+","+held, "")}
	c, _ := scripted(t, client.Options{Observer: &recorder{}}, answer, answer)
	obj := configMap("prod", "web", nil)
	obj.UID, obj.ResourceVersion = "u", "6"
	before := obj.DeepCopy()
	if err := c.SetFinalizers(t.Context(), obj, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(obj, before) {
		t.Errorf("the object became %v, want it untouched: it may be a Lister's", obj)
	}
}

func TestClient_WhatIsSent(t *testing.T) {
	const merge = "application/merge-patch+json"
	for _, row := range []struct {
		name string
		call func(*client.Client) error
		want string // method path?query content-type body
	}{
		{"create", func(c *client.Client) error {
			return c.Create(t.Context(), website("prod", "web"), client.FieldOwner("me"), client.Strict, client.DryRun{})
		}, `POST /apis/example.com/v1/namespaces/prod/websites?dryRun=All&fieldManager=me&fieldValidation=Strict application/json {"kind":"Website","apiVersion":"example.com/v1","metadata":{"name":"web","namespace":"prod"},"spec":{"content":"hello"},"status":{"replicas":0}}`},
		{"merge patch", func(c *client.Client) error {
			return c.Patch(t.Context(), website("prod", "web"), client.MergePatch(map[string]any{"a": nil}), client.Preconditions{UID: "u", ResourceVersion: "6"})
		}, `PATCH /apis/example.com/v1/namespaces/prod/websites/web?fieldManager=default&fieldValidation=Strict ` + merge + ` {"a":null,"metadata":{"resourceVersion":"6","uid":"u"}}`},
		{"json patch", func(c *client.Client) error {
			return c.Patch(t.Context(), website("prod", "web"), client.JSONPatch(client.JSONOp{Op: "move", From: "/a", Path: "/b"}, client.JSONOp{Op: "test", Path: "/c"}), client.Preconditions{UID: "u"})
		}, `PATCH /apis/example.com/v1/namespaces/prod/websites/web?fieldManager=default&fieldValidation=Strict application/json-patch+json [{"op":"replace","path":"/metadata/uid","value":"u"},{"from":"/a","op":"move","path":"/b"},{"op":"test","path":"/c","value":null}]`},
		{"strategic patch", func(c *client.Client) error {
			return c.Patch(t.Context(), namespace("prod"), client.StrategicMergePatch([]byte(`{"a":1}`)))
		}, `PATCH /api/v1/namespaces/prod?fieldManager=default&fieldValidation=Strict application/strategic-merge-patch+json {"a":1}`},
		{"merge from", func(c *client.Client) error {
			old := configMap("prod", "web", map[string]string{"gone": "1", "kept": "1", "changed": "1"})
			now := configMap("prod", "web", map[string]string{"kept": "1", "changed": "2", "new": ""})
			now.Labels = map[string]string{"a": "b"}
			return c.Patch(t.Context(), now, client.MergeFrom(old))
		}, `PATCH /api/v1/namespaces/prod/configmaps/web?fieldManager=default&fieldValidation=Strict ` + merge + ` {"data":{"changed":"2","gone":null,"new":""},"metadata":{"labels":{"a":"b"}}}`},
		{"apply of status", func(c *client.Client) error {
			site := website("prod", "web")
			site.Status.Replicas = 2
			return c.Status().Apply(t.Context(), site, client.Force{})
		}, `PATCH /apis/example.com/v1/namespaces/prod/websites/web/status?fieldManager=default&fieldValidation=Strict&force=true application/apply-patch+yaml {"apiVersion":"example.com/v1","kind":"Website","metadata":{"name":"web","namespace":"prod"},"status":{"replicas":2}}`},
		{"apply of unstructured", func(c *client.Client) error {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"n": int64(0)}, "status": map[string]any{"x": "y"}}}
			u.SetGroupVersionKind(websiteKind)
			u.SetNamespace("prod")
			u.SetName("web")
			u.SetResourceVersion("6")
			u.SetUID("u")
			return c.Apply(t.Context(), u, client.Preconditions{ResourceVersion: "5"})
		}, `PATCH /apis/example.com/v1/namespaces/prod/websites/web?fieldManager=default&fieldValidation=Strict application/apply-patch+yaml {"apiVersion":"example.com/v1","kind":"Website","metadata":{"name":"web","namespace":"prod","resourceVersion":"5"},"spec":{"n":0}}`},
		{"finalizers", func(c *client.Client) error {
			obj := website("prod", "web")
			obj.UID, obj.ResourceVersion = "u", "6"
			return c.SetFinalizers(t.Context(), obj, nil)
		}, `PATCH /apis/example.com/v1/namespaces/prod/websites/web?fieldManager=default&fieldValidation=Strict ` + merge + ` {"metadata":{"finalizers":[],"resourceVersion":"6","uid":"u"}}`},
		{"delete", func(c *client.Client) error {
			return c.Delete(t.Context(), website("prod", "web"), client.Preconditions{UID: "u", ResourceVersion: "6"}, client.Propagation("Orphan"), client.GracePeriod(2*time.Second), client.DryRun{})
		}, `DELETE /apis/example.com/v1/namespaces/prod/websites/web? application/json {"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":2,"preconditions":{"uid":"u","resourceVersion":"6"},"propagationPolicy":"Orphan","dryRun":["All"]}`},
		{"delete all of", func(c *client.Client) error {
			return client.DeleteAllOf[*Website](t.Context(), c, client.InNamespace("prod"), client.MatchingLabels{"a": "b"}, client.MatchingLabels{"c": "d"})
		}, `DELETE /apis/example.com/v1/namespaces/prod/websites?labelSelector=a%3Db%2Cc%3Dd application/json {"kind":"DeleteOptions","apiVersion":"v1"}`},
		{"evict", func(c *client.Client) error {
			return c.Evict(t.Context(), pod("prod", "web"), client.Preconditions{UID: "u"}, client.GracePeriod(0), client.DryRun{})
		}, `POST /api/v1/namespaces/prod/pods/web/eviction? application/json {"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"web","namespace":"prod"},"deleteOptions":{"gracePeriodSeconds":0,"preconditions":{"uid":"u"},"dryRun":["All"]}}`},
		{"set scale", func(c *client.Client) error {
			return c.SetScale(t.Context(), deployment("prod", "web"), 0, client.Preconditions{ResourceVersion: "6"})
		}, `PATCH /apis/apps/v1/namespaces/prod/deployments/web/scale?fieldManager=default&fieldValidation=Strict ` + merge + ` {"metadata":{"resourceVersion":"6"},"spec":{"replicas":0}}`},
		{"apply a child", func(c *client.Client) error {
			return c.ApplyChild(t.Context(), configMap("prod", "web", nil), "me", nil)
		}, `PATCH /api/v1/namespaces/prod/configmaps/web?fieldManager=me&fieldValidation=Strict&force=true application/apply-patch+yaml {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"prod"}}`},
		{"delete a child", func(c *client.Client) error {
			obj := configMap("prod", "web", nil)
			obj.UID, obj.ResourceVersion = "u", "6"
			return c.DeleteChild(t.Context(), obj)
		}, `DELETE /api/v1/namespaces/prod/configmaps/web? application/json {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u","resourceVersion":"6"},"propagationPolicy":"Background"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, s := scripted(t, client.Options{FieldOwner: "default"}, reply{body: `{"kind":"Status","apiVersion":"v1","status":"Success"}`})
			if err := row.call(c); err != nil {
				t.Fatal(err)
			}
			r := s.requests()[0]
			got := r.method + " " + r.path + "?" + r.query + " " + r.header.Get("Content-Type") + " " + r.body
			if got != row.want {
				t.Errorf("sent %s\nwant %s", got, row.want)
			}
		})
	}
}

func TestClient_ProtobufForBuiltInKindsOnly(t *testing.T) {
	answer := configMap("prod", "web", map[string]string{"k": "v"})
	for _, row := range []struct {
		name string
		cfg  rest.ContentConfig
		obj  kube.Object
		want string
	}{
		{"built-in", rest.ContentConfig{}, configMap("prod", "web", nil), runtime.ContentTypeProtobuf},
		{"custom", rest.ContentConfig{}, website("prod", "web"), runtime.ContentTypeJSON},
		{"asked for JSON", rest.ContentConfig{ContentType: runtime.ContentTypeJSON}, configMap("prod", "web", nil), runtime.ContentTypeJSON},
	} {
		s := &script{answers: []reply{protobuf(t, row.obj.(runtime.Object).GetObjectKind().GroupVersionKind().Kind, answer)}}
		c, err := client.New(&rest.Config{Host: "http://api.test", Transport: s, ContentConfig: row.cfg}, testScheme(t), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Create(t.Context(), row.obj)
		if got := s.requests()[0].header.Get("Content-Type"); got != row.want {
			t.Errorf("%s: sent as %s, want %s (%v)", row.name, got, row.want, err)
		}
		if cm, ok := row.obj.(*corev1.ConfigMap); ok && (err != nil || cm.Data["k"] != "v") {
			t.Errorf("%s: read %v, %v from a protobuf answer, want k=v", row.name, cm, err)
		}
	}
}

func TestClient_EachWarningIsLoggedOnce(t *testing.T) {
	var fallback, own []string
	logTo := func(lines *[]string) logr.Logger {
		return funcr.New(func(_, args string) { *lines = append(*lines, args) }, funcr.Options{})
	}
	warn := func(text string) reply {
		return reply{body: thing("v1", "ConfigMap", "", ""), header: http.Header{"Warning": {`299 - "` + text + `"`}}}
	}
	c, _ := scripted(t, client.Options{Logger: logTo(&fallback)}, warn("old API"), warn("old API"), warn("typo"))
	ctx := t.Context()
	for i := range 3 {
		if i == 2 {
			ctx = logr.NewContext(ctx, logTo(&own))
		}
		if err := c.Create(ctx, configMap("prod", "web", nil)); err != nil {
			t.Fatal(err)
		}
	}
	if len(fallback) != 1 || !strings.Contains(fallback[0], "old API") {
		t.Errorf("Options.Logger got %q, want one line on the old API", fallback)
	}
	if len(own) != 1 || !strings.Contains(own[0], "typo") {
		t.Errorf("the context's logger got %q, want one line on the typo", own)
	}
}

func TestClient_DiscoveryIsAskedOncePerGroup_C1(t *testing.T) {
	counted := &discoveries{script: script{answers: []reply{{body: thing("v1", "ConfigMap", "", "")}, {body: thing("v1", "Pod", "", "")}, {body: thing("v1", "Pod", "", "")}}}}
	c, err := client.New(&rest.Config{Host: "http://api.test", Transport: counted, UserAgent: "me"}, testScheme(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range []kube.Object{configMap("prod", "web", nil), pod("prod", "web"), pod("prod", "web")} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	if counted.n != 1 {
		t.Errorf("discovery was asked %d times for two kinds of one group, want once", counted.n)
	}
	for range 2 {
		if err := c.Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: at("prod", "web")}); err == nil {
			t.Error("a kind that is not served was created")
		}
	}
	if counted.n != 3 {
		t.Errorf("discovery was asked %d times, want 3: a kind that was not served may be by now", counted.n)
	}
	c.ResetDiscovery()
	if err := c.Create(t.Context(), pod("prod", "web")); err == nil || counted.n != 4 {
		t.Errorf("%d times after a reset (%v), want 4", counted.n, err)
	}
	if agent := counted.requests()[0].header.Get("User-Agent"); agent != "me" {
		t.Errorf("the user agent is %q, want the configuration's", agent)
	}
}

// discoveries counts the requests for the group v1's resources.
type discoveries struct {
	script
	n int
}

func (d *discoveries) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/api/v1" {
		d.n++
	}
	return d.script.RoundTrip(r)
}
