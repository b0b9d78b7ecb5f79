// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

// Unknown is a type that no scheme has.
type Unknown struct{ Website }

func TestClient_WhatCannotBeIsAnErrorBeforeTheRequest_C5(t *testing.T) {
	ctx := context.Background()
	web := func() *corev1.ConfigMap { return configMap("prod", "web", nil) }
	for _, row := range []struct {
		name string
		call func(*client.Client) error
		want string // in the error
	}{
		{"no namespace", func(c *client.Client) error { return c.Create(ctx, configMap("", "web", nil)) }, "create ConfigMap web: kind ConfigMap is namespaced; set metadata.namespace"},
		{"no namespace, by key", func(c *client.Client) error { return c.Get(ctx, kube.Key{Name: "web"}, web()) }, "set metadata.namespace"},
		{"namespace of a cluster-scoped kind", func(c *client.Client) error {
			return c.Delete(ctx, &corev1.Namespace{ObjectMeta: at("prod", "web")})
		}, `delete Namespace prod/web: kind Namespace is cluster-scoped; leave the namespace "prod" out`},
		{"no name", func(c *client.Client) error { return c.Update(ctx, configMap("prod", "", nil)) }, "set metadata.name"},
		{"no name to create", func(c *client.Client) error { return c.Create(ctx, configMap("prod", "", nil)) }, "metadata.generateName"},
		{"a name that is a path", func(c *client.Client) error { return c.Delete(ctx, configMap("prod", "a/b", nil)) }, "may not contain '/'"},
		{"nil object", func(c *client.Client) error { return c.Update(ctx, nil) }, "nil"},
		{"nil pointer", func(c *client.Client) error { return c.Create(ctx, (*corev1.ConfigMap)(nil)) }, "nil"},
		{"nil to read into", func(c *client.Client) error { return c.Get(ctx, kube.Key{}, nil) }, "nil"},
		{"nil to apply", func(c *client.Client) error { return c.Apply(ctx, nil) }, "nil"},
		{"nil to apply to status", func(c *client.Client) error { return c.Status().Apply(ctx, (*Website)(nil)) }, "nil"},
		{"nil body", func(c *client.Client) error { return c.SubResource("eviction").Create(ctx, pod("prod", "web"), nil) }, "body is nil"},
		{"nil content", func(c *client.Client) error { return c.SubResource("scale").Get(ctx, deployment("prod", "web"), nil) }, "nil"},
		{"nil option", func(c *client.Client) error { return c.Update(ctx, web(), nil) }, "option is nil"},
		{"type not in the scheme", func(c *client.Client) error { return c.Create(ctx, &Unknown{}) }, "AddToScheme"},
		{"unstructured without kind", func(c *client.Client) error { return c.Create(ctx, &unstructured.Unstructured{}) }, "SetGroupVersionKind"},
		{"apply without field owner", func(c *client.Client) error { return c.Apply(ctx, web()) }, `pass client.FieldOwner("my-controller")`},
		{"apply of no object", func(c *client.Client) error { return c.Apply(ctx, 7, client.FieldOwner("x")) }, "does not marshal to an object"},
		{"apply of what has no kind", func(c *client.Client) error { return c.Apply(ctx, map[string]any{}, client.FieldOwner("x")) }, "no apiVersion and kind"},
		{"option that does not fit", func(c *client.Client) error { return c.Create(ctx, web(), client.Force{}) }, "option client.Force does not fit create"},
		{"preconditions of an update", func(c *client.Client) error { return c.Update(ctx, web(), client.Preconditions{UID: "u"}) }, "does not fit update"},
		{"body of no subresource", func(c *client.Client) error { return c.Update(ctx, web(), client.Body{Object: web()}) }, "subresources"},
		{"nil in a body", func(c *client.Client) error { return c.Status().Update(ctx, web(), client.Body{}) }, "nil"},
		{"field validation", func(c *client.Client) error { return c.Create(ctx, web(), client.FieldValidation("strict")) }, "Strict, Warn, Ignore"},
		{"propagation", func(c *client.Client) error { return c.Delete(ctx, web(), client.Propagation("foreground")) }, "Background, Foreground, Orphan"},
		{"grace period", func(c *client.Client) error { return c.Delete(ctx, web(), client.GracePeriod(time.Millisecond)) }, "whole number of seconds"},
		{"zero patch", func(c *client.Client) error { return c.Patch(ctx, web(), client.Patch{}) }, "make it with"},
		{"patch from another type", func(c *client.Client) error { return c.Patch(ctx, web(), client.MergeFrom(namespace("prod"))) }, "one type"},
		{"patch from nil", func(c *client.Client) error { return c.Patch(ctx, web(), client.MergeFrom(nil)) }, "one type"},
		{"conditions on what is no patch", func(c *client.Client) error {
			return c.Patch(ctx, web(), client.MergePatch([]byte(`{`)), client.Preconditions{UID: "u"})
		}, "preconditions"},
		{"metadata written whole", func(c *client.Client) error {
			m := &metav1.PartialObjectMetadata{ObjectMeta: at("prod", "web")}
			m.SetGroupVersionKind(configMapKind)
			return c.Update(ctx, m)
		}, "use Patch"},
		{"finalizers of what was not read", func(c *client.Client) error { return c.SetFinalizers(ctx, web(), nil) }, "read from the server"},
		{"deletion of a child that was not read", func(c *client.Client) error { return c.DeleteChild(ctx, web()) }, "read from the server"},
		{"nil child that is read", func(c *client.Client) error { return second(c.ReadChild(ctx, nil)) }, "nil"},
		{"nil child", func(c *client.Client) error { return c.ApplyChild(ctx, nil, "me", nil) }, "nil"},
		{"eviction of what is no Pod", func(c *client.Client) error { return c.Evict(ctx, web()) }, "evict ConfigMap prod/web: kind ConfigMap cannot be evicted"},
		{"fewer replicas than none", func(c *client.Client) error { return c.SetScale(ctx, deployment("prod", "web"), -1) }, "-1 replicas"},
		{"nothing to mutate with", func(c *client.Client) error { return second(c.CreateOrUpdate(ctx, web(), nil)) }, "use Apply"},
		{"subresource without name", func(c *client.Client) error { return c.SubResource("").Update(ctx, web()) }, "not the name of a subresource"},
		{"subresource that is a path", func(c *client.Client) error { return c.SubResource("a/b").Get(ctx, web(), web()) }, "not the name of a subresource"},
		{"kind that is not served", func(c *client.Client) error {
			return c.Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: at("prod", "web")})
		}, "not served by the API server (is its CustomResourceDefinition installed?)"},
		{"list of an interface", func(c *client.Client) error { return firstError[kube.Object](ctx, c) }, "pointer to an API type"},
		{"list of unstructured", func(c *client.Client) error { return firstError[*unstructured.Unstructured](ctx, c) }, "client.OfKind"},
		{"list in a namespace that cannot be", func(c *client.Client) error {
			return firstError[*corev1.Namespace](ctx, c, client.InNamespace("prod"))
		}, "cluster-scoped"},
		{"list by bad labels", func(c *client.Client) error {
			return firstError[*corev1.ConfigMap](ctx, c, client.MatchingLabels{"a b": ""})
		}, "labels to match"},
		{"list by nil selector", func(c *client.Client) error {
			return firstError[*corev1.ConfigMap](ctx, c, client.MatchingSelector{})
		}, "selector to match is nil"},
		{"list of nothing", func(c *client.Client) error {
			return firstError[*corev1.ConfigMap](ctx, c, client.MatchingSelector{Selector: labels.Nothing()})
		}, "matches nothing"},
		{"list by negative limit", func(c *client.Client) error { return firstError[*corev1.ConfigMap](ctx, c, client.Limit(-1)) }, "negative"},
		{"delete all of everywhere", func(c *client.Client) error { return client.DeleteAllOf[*corev1.ConfigMap](ctx, c) }, "pass client.InNamespace"},
		{"delete all of by limit", func(c *client.Client) error {
			return client.DeleteAllOf[*corev1.ConfigMap](ctx, c, client.InNamespace("prod"), client.Limit(1))
		}, "does not fit delete all of"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, s := scripted(t, client.Options{})
			err := row.call(c)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got error %q, want one with %q", err, row.want)
			}
			if sent := s.requests(); len(sent) > 0 {
				t.Errorf("asked the server %v, want no request", sent)
			}
		})
	}
}

func firstError[T kube.Object](ctx context.Context, c *client.Client, opts ...client.Option) error {
	for _, err := range client.List[T](ctx, c, opts...) {
		return err
	}
	return nil
}

func TestNew_MisuseIsAnErrorWithTheFix_C5(t *testing.T) {
	cfg, scheme := &rest.Config{Host: "http://api.test"}, runtime.NewScheme()
	for name, err := range map[string]error{
		"REST configuration is nil": second(client.New(nil, scheme, client.Options{})),
		"scheme is nil":             second(client.New(cfg, nil, client.Options{})),
		"Options.FieldValidation":   second(client.New(cfg, scheme, client.Options{FieldValidation: "x"})),
		"make client for":           second(client.New(&rest.Config{Host: "https://api.test", TLSClientConfig: rest.TLSClientConfig{CAFile: "/no/such/file"}}, scheme, client.Options{})),
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error that says %q", err, name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestClient_CauseOfAnErrorIsKept_C6(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, _ := scripted(t, client.Options{})
	if err := c.Create(ctx, configMap("prod", "web", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled: the caller has ended it", err)
	}
}

// An update without a version would overwrite what others have changed, for the kinds that
// allow it, so none is sent.
func TestUpdate_WithoutAVersionIsRefused_C5(t *testing.T) {
	c, s := scripted(t, client.Options{})
	loose := &unstructured.Unstructured{}
	loose.SetGroupVersionKind(websiteKind)
	loose.SetNamespace("prod")
	loose.SetName("web")
	for _, obj := range []kube.Object{configMap("prod", "web", nil), website("prod", "web"), loose} {
		for name, update := range map[string]func(context.Context, kube.Object, ...client.Option) error{"update": c.Update, "update status": c.Status().Update} {
			if err := update(t.Context(), obj); err == nil || !strings.Contains(err.Error(), "resourceVersion") || len(s.requests()) > 0 {
				t.Errorf("%s of a %T: got %v after %v, want an error that names the resourceVersion, and nothing sent", name, obj, err, s.requests())
			}
		}
	}
}

// A CustomResourceDefinition that is defined anew with another scope: what the client knows of
// the old one refuses nothing.
func TestClient_KindChangesItsScope_C5(t *testing.T) {
	answer := reply{body: thing("example.com/v1", "Website", "", "")}
	s := &script{answers: []reply{answer, answer, answer}}
	namespaced := websiteDiscovery
	clustered := strings.ReplaceAll(websiteDiscovery, `"namespaced":true`, `"namespaced":false`)
	served := namespaced
	c, err := client.New(&rest.Config{Host: "http://api.test", Transport: discovering{s, &served}}, testScheme(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	get := func(namespace string) error {
		return c.Get(t.Context(), kube.Key{Namespace: namespace, Name: "web"}, &Website{})
	}
	if err := get("prod"); err != nil {
		t.Fatal(err)
	}
	served = clustered
	if err := get(""); err != nil {
		t.Errorf("the kind is cluster-scoped now: %v", err)
	}
	served = namespaced
	if err := get("prod"); err != nil {
		t.Errorf("the kind is namespaced again: %v", err)
	}
	if err := get(""); err == nil || !strings.Contains(err.Error(), "set metadata.namespace") {
		t.Errorf("got %v, want the misuse reported", err)
	}
}

// The scheme's own error names a file of apimachinery.
func TestClient_TypeWithoutSchemeNamesNoFile_C5(t *testing.T) {
	c, _ := scripted(t, client.Options{})
	if err := c.Create(t.Context(), &Unknown{*website("prod", "web")}); err == nil || strings.Contains(err.Error(), ".go:") {
		t.Errorf("got %v, want an error without a line of code", err)
	}
}
