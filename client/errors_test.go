// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

const (
	modified   = `Operation cannot be fulfilled on configmaps "web": the object has been modified; please apply your changes to the latest version and try again`
	anotherUID = `Operation cannot be fulfilled on configmaps "web": Precondition failed: UID in precondition: u, UID in object meta: v`
)

func TestConflictError_OnlyOfStaleVersions_R6(t *testing.T) {
	details := `"name":"web","kind":"configmaps"`
	conflict := status(409, "Conflict", modified, details)
	versioned := func(c *client.Client) error {
		obj := configMap("prod", "web", nil)
		obj.UID, obj.ResourceVersion = "u", "6"
		return c.Update(t.Context(), obj)
	}
	for _, row := range []struct {
		name   string
		call   func(*client.Client) error
		answer reply
		waits  bool
	}{
		{"update", versioned, conflict, true},
		{"update of another UID", versioned, status(409, "Conflict", anotherUID, details), false},
		{"create", func(c *client.Client) error { return c.Create(t.Context(), configMap("prod", "web", nil)) },
			status(409, "AlreadyExists", `configmaps "web" already exists`, details), false},
		{"patch with a version", func(c *client.Client) error {
			return c.Patch(t.Context(), configMap("prod", "web", nil), client.MergePatch([]byte(`{"metadata":{"resourceVersion":"6"}}`)))
		}, conflict, true},
		{"patch with a precondition", func(c *client.Client) error {
			return c.Patch(t.Context(), configMap("prod", "web", nil), client.JSONPatch(), client.Preconditions{ResourceVersion: "6"})
		}, conflict, true},
		{"patch without", func(c *client.Client) error {
			return c.Patch(t.Context(), configMap("prod", "web", nil), client.MergePatch([]byte(`{}`)))
		}, conflict, false},
		{"delete with a precondition", func(c *client.Client) error {
			return c.Delete(t.Context(), configMap("prod", "web", nil), client.Preconditions{ResourceVersion: "6"})
		}, status(409, "Conflict", `Precondition failed: ResourceVersion in precondition: 6, ResourceVersion in object meta: 7`, details), true},
		{"apply, another field owner", func(c *client.Client) error {
			return c.Apply(t.Context(), coreac.ConfigMap("web", "prod").WithResourceVersion("6"))
		}, status(409, "Conflict", `Apply failed with 1 conflict`, `"causes":[{"reason":"FieldManagerConflict","message":"conflict with x","field":".data.k"}]`), false},
		{"apply with a version", func(c *client.Client) error {
			return c.Apply(t.Context(), coreac.ConfigMap("web", "prod").WithResourceVersion("6"))
		}, conflict, true},
		{"another error", versioned, status(403, "Forbidden", `no`, details), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := &recorder{}
			c, _ := scripted(t, client.Options{Observer: r, FieldOwner: "test"}, row.answer)
			err := row.call(c)
			var waiter interface {
				error
				WhenPassed(do func()) (stop func())
			}
			if got := errors.As(err, &waiter); got != row.waits {
				t.Fatalf("error %v waits for the cache: %v, want %v", err, got, row.waits)
			}
			var statusErr *apierrors.StatusError
			if !errors.As(err, &statusErr) {
				t.Errorf("%v does not wrap the server's Status", err)
			}
			if !row.waits {
				return
			}
			if !apierrors.IsConflict(err) {
				t.Errorf("apierrors.IsConflict(%v) is false", err)
			}
			called := false
			waiter.WhenPassed(func() { called = true })()
			waits := r.waits()
			if len(waits) != 1 {
				t.Fatalf("the observer was asked %d times to wait, want once", len(waits))
			}
			waits[0].do()
			w := waits[0]
			if w.kind != configMapKind || w.key != (kube.Key{Namespace: "prod", Name: "web"}) || w.than != 6 || !called {
				t.Errorf("waits for %v %v to pass %d, called back %v; want ConfigMap prod/web to pass 6, true", w.kind, w.key, w.than, called)
			}
		})
	}
}

func TestConflictError_WithoutObserverWaitsForNothing_R6(t *testing.T) {
	c, _ := scripted(t, client.Options{}, status(409, "Conflict", modified, ""))
	obj := configMap("prod", "web", nil)
	obj.ResourceVersion = "6"
	var conflict *client.ConflictError
	if err := c.Update(t.Context(), obj); !errors.As(err, &conflict) {
		t.Fatalf("got %v, want a conflict", err)
	}
	stop := conflict.WhenPassed(func() { t.Error("called back, though nobody knows what the cache holds") })
	stop()
	stop()
}

func TestClient_ErrorsSayWhatWasDone_C6(t *testing.T) {
	generated := regexp.MustCompile("web-[a-z0-9]{5}")
	notFound := status(404, "NotFound", `configmaps "web" not found`, `"name":"web","kind":"configmaps"`)
	key := kube.Key{Namespace: "prod", Name: "web"}
	for _, row := range []struct {
		call func(*client.Client) error
		want string
	}{
		{func(c *client.Client) error { return c.Get(t.Context(), key, configMap("", "", nil)) }, `get ConfigMap prod/web: configmaps "web" not found`},
		{func(c *client.Client) error { return c.Update(t.Context(), asRead(configMap("prod", "web", nil))) }, `update ConfigMap prod/web: configmaps "web" not found`},
		{func(c *client.Client) error { return c.Delete(t.Context(), configMap("prod", "web", nil)) }, `delete ConfigMap prod/web: configmaps "web" not found`},
		{func(c *client.Client) error { return c.Status().Update(t.Context(), asRead(website("prod", "web"))) }, `update status of Website prod/web: configmaps "web" not found`},
		{func(c *client.Client) error { return c.Delete(t.Context(), namespace("web")) }, `delete Namespace web: configmaps "web" not found`},
		{func(c *client.Client) error {
			obj := configMap("prod", "", nil)
			obj.GenerateName = "web-"
			return c.Create(t.Context(), obj)
		}, `create ConfigMap prod/web-*: configmaps "web" not found`},
	} {
		c, _ := scripted(t, client.Options{}, notFound)
		err := row.call(c)
		if err == nil || generated.ReplaceAllString(err.Error(), "web-*") != row.want {
			t.Errorf("got  %v\nwant %s", err, row.want)
		}
		if !apierrors.IsNotFound(err) {
			t.Errorf("apierrors.IsNotFound(%v) is false", err)
		}
	}
}

func TestClient_MissingKindIsNoMissingObject_C6(t *testing.T) {
	page := reply{code: 404, body: "404 page not found\n"}
	page.header = map[string][]string{"Content-Type": {"text/plain"}}
	for _, row := range []struct {
		name   string
		call   func(*client.Client) error
		answer reply
		want   string
	}{
		{"the path is gone", func(c *client.Client) error {
			return c.Get(t.Context(), kube.Key{Namespace: "prod", Name: "web"}, &Website{})
		}, page, "is its CustomResourceDefinition installed?"},
		{"the subresource's path is not there", func(c *client.Client) error {
			return c.SubResource("scale").Update(t.Context(), asRead(website("prod", "web")))
		}, page, `serves no subresource "scale" of Website`},
		{"the server says the object is not found, for want of a subresource", func(c *client.Client) error {
			return c.SubResource("scale").Update(t.Context(), asRead(website("prod", "web")))
		}, status(404, "NotFound", `websites.example.com "web" not found`, `"name":"web"`), `serves no subresource "scale" of Website`},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, _ := scripted(t, client.Options{}, row.answer)
			err := row.call(c)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want an error with %q", err, row.want)
			}
			if apierrors.IsNotFound(err) || !meta.IsNoMatchError(err) {
				t.Errorf("%v: IsNotFound %v, IsNoMatchError %v; want false, true: callers ignore what is not found", err, apierrors.IsNotFound(err), meta.IsNoMatchError(err))
			}
		})
	}
}
