// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

func TestClient_WritesAreStrictUnlessAskedOtherwise_C7(t *testing.T) {
	create := func(c *client.Client) error { return c.Create(t.Context(), configMap("prod", "web", nil)) }
	for _, row := range []struct {
		name string
		opts client.Options
		call func(*client.Client) error
		want string // in the query
	}{
		{"create", client.Options{}, create, "fieldValidation=Strict"},
		{"update", client.Options{}, func(c *client.Client) error { return c.Update(t.Context(), asRead(configMap("prod", "web", nil))) }, "fieldValidation=Strict"},
		{"patch", client.Options{}, func(c *client.Client) error {
			return c.Patch(t.Context(), configMap("prod", "web", nil), client.MergePatch([]byte(`{}`)))
		}, "fieldValidation=Strict"},
		{"apply", client.Options{FieldOwner: "a"}, func(c *client.Client) error { return c.Apply(t.Context(), configMap("prod", "web", nil)) }, "fieldValidation=Strict"},
		{"status", client.Options{}, func(c *client.Client) error { return c.Status().Update(t.Context(), asRead(website("prod", "web"))) }, "fieldValidation=Strict"},
		{"options", client.Options{FieldValidation: client.Warn}, create, "fieldValidation=Warn"},
		{"with", client.Options{}, func(c *client.Client) error { return create(c.With(client.Ignore)) }, "fieldValidation=Ignore"},
		{"one call", client.Options{FieldValidation: client.Ignore}, func(c *client.Client) error {
			return c.With(client.Ignore).Create(t.Context(), configMap("prod", "web", nil), client.Warn)
		}, "fieldValidation=Warn"},
	} {
		c, s := scripted(t, row.opts, reply{body: thing("v1", "ConfigMap", "", "")}, reply{body: thing("v1", "ConfigMap", "", "")})
		if err := row.call(c); err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		if got := s.requests()[0].query; !strings.Contains(got, row.want) {
			t.Errorf("%s: asked for %q, want %q in it: what the server does not know must not get lost", row.name, got, row.want)
		}
	}
}

func TestClient_NothingLeavesTheNamespace_C9(t *testing.T) {
	inProd := func(obj string) string { return "/namespaces/prod/" + obj }
	for _, row := range []struct {
		name string
		call func(*client.Client) error
		want string // path; empty: no request
	}{
		{"create, no namespace", func(c *client.Client) error { return c.Create(t.Context(), configMap("", "web", nil)) }, inProd("configmaps")},
		{"create, its namespace", func(c *client.Client) error { return c.Create(t.Context(), configMap("prod", "web", nil)) }, inProd("configmaps")},
		{"create, another", func(c *client.Client) error { return c.Create(t.Context(), configMap("dev", "web", nil)) }, ""},
		{"create, cluster scope", func(c *client.Client) error { return c.Create(t.Context(), namespace("prod")) }, ""},
		{"get", func(c *client.Client) error {
			return c.Get(t.Context(), kube.Key{Name: "web"}, &corev1.ConfigMap{})
		}, inProd("configmaps/web")},
		{"get, another", func(c *client.Client) error {
			return c.Get(t.Context(), kube.Key{Namespace: "dev", Name: "web"}, &corev1.ConfigMap{})
		}, ""},
		{"apply", func(c *client.Client) error { return c.Apply(t.Context(), configMap("", "web", nil)) }, inProd("configmaps/web")},
		{"status", func(c *client.Client) error { return c.Status().Apply(t.Context(), website("", "web")) }, inProd("websites/web/status")},
		{"delete, another", func(c *client.Client) error { return c.Delete(t.Context(), configMap("dev", "web", nil)) }, ""},
		{"delete all of", func(c *client.Client) error { return client.DeleteAllOf[*corev1.ConfigMap](t.Context(), c) }, inProd("configmaps")},
		{"delete all of, another", func(c *client.Client) error {
			return client.DeleteAllOf[*corev1.ConfigMap](t.Context(), c, client.InNamespace("dev"))
		}, ""},
		{"list", func(c *client.Client) error { return firstOf(client.List[*corev1.ConfigMap](t.Context(), c)) }, inProd("configmaps")},
		{"list, another", func(c *client.Client) error {
			return firstOf(client.List[*corev1.ConfigMap](t.Context(), c, client.InNamespace("dev")))
		}, ""},
		{"watch, another", func(c *client.Client) error {
			return firstOf(client.Watch[*corev1.ConfigMap](t.Context(), c, client.InNamespace("dev")))
		}, ""},
		{"evict, another", func(c *client.Client) error { return c.Evict(t.Context(), pod("dev", "web")) }, ""},
		{"widened", func(c *client.Client) error {
			return c.With(client.InNamespace("dev")).Create(t.Context(), configMap("dev", "web", nil))
		}, ""},
		{"widened to all", func(c *client.Client) error {
			return c.With(client.InNamespace("")).Create(t.Context(), configMap("dev", "web", nil))
		}, ""},
	} {
		c, s := scripted(t, client.Options{FieldOwner: "test"}, reply{body: thing("v1", "ConfigMap", "", "")})
		err := row.call(c.With(client.InNamespace("prod")))
		sent := s.requests()
		switch {
		case row.want == "" && (len(sent) != 0 || err == nil):
			t.Errorf("%s: sent %v (%v), want an error and no request", row.name, sent, err)
		case row.want != "" && (len(sent) != 1 || err != nil || !strings.HasSuffix(sent[0].path, row.want)):
			t.Errorf("%s: sent %v (%v), want one request for %s", row.name, sent, err, row.want)
		}
	}
}

// firstOf returns the error of the first iteration.
func firstOf[T any](seq func(func(T, error) bool)) (err error) {
	for _, err = range seq {
		break
	}
	return err
}

func TestClient_WithGivesDefaultsWhereTheyFit(t *testing.T) {
	c, s := scripted(t, client.Options{FieldOwner: "first"}, reply{body: thing("v1", "ConfigMap", "", "")}, reply{body: thing("v1", "ConfigMap", "", "")}, reply{body: thing("v1", "ConfigMap", "", "")})
	view := c.With(client.FieldOwner("second"), client.Force{}, client.DryRun{}, client.Warn)
	if err := view.Apply(t.Context(), configMap("prod", "web", nil)); err != nil {
		t.Fatal(err)
	}
	if err := view.Delete(t.Context(), configMap("prod", "web", nil)); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), configMap("prod", "web", nil)); err != nil {
		t.Fatal(err)
	}
	sent := s.requests()
	if got, want := sent[0].query, "dryRun=All&fieldManager=second&fieldValidation=Warn&force=true"; got != want {
		t.Errorf("apply asked for %s, want %s", got, want)
	}
	if !strings.Contains(sent[1].body, `"dryRun":["All"]`) {
		t.Errorf("delete sent %s, want a dry run", sent[1].body)
	}
	if got, want := sent[2].query, "fieldManager=first&fieldValidation=Strict"; got != want {
		t.Errorf("the client itself asked for %s, want %s: a view changes nothing for others", got, want)
	}
}

func TestClient_WithRefusesWhatBelongsToOneCall_C5(t *testing.T) {
	c, s := scripted(t, client.Options{})
	for _, o := range []client.Option{nil, client.Preconditions{UID: "u"}, client.MatchingLabels{"a": "b"}, client.FieldValidation("Sloppy"), client.Propagation("Up"), client.Limit(-1)} {
		if err := c.With(o).Create(t.Context(), configMap("prod", "web", nil)); err == nil || !strings.Contains(err.Error(), "client.With: ") {
			t.Errorf("With(%v): got %v, want an error of the call that names With", o, err)
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}
