// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// The server knows a field that the Go type does not, as when a program is older than the
// CustomResourceDefinition. Whatever is written with the Go type, an informer of unstructured
// objects has exactly what the server answered.
func TestClient_TypedWriteLeavesOtherCachesWhole_C2(t *testing.T) {
	const newer = `"spec":{"content":"hi","newer":"keep me"}`
	ctx := t.Context()
	held := `"finalizers":["example.com/a"]`
	dying := held + `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
	for name, row := range map[string]struct {
		extra string
		call  func(*client.Client, *Website) error
	}{
		"create":     {"", func(c *client.Client, s *Website) error { return c.Create(ctx, s) }},
		"update":     {"", func(c *client.Client, s *Website) error { return c.Update(ctx, s) }},
		"patch":      {"", func(c *client.Client, s *Website) error { return c.Patch(ctx, s, client.MergePatch([]byte(`{}`))) }},
		"merge from": {"", func(c *client.Client, s *Website) error { return c.Patch(ctx, s, client.MergeFrom(kube.Copy(s))) }},
		"status patch": {"", func(c *client.Client, s *Website) error {
			return c.Status().Patch(ctx, s, client.MergePatch([]byte(`{}`)))
		}},
		"status": {"", func(c *client.Client, s *Website) error { return c.Status().Update(ctx, s) }},
		"changes": {"", func(c *client.Client, s *Website) error {
			to := kube.Copy(s)
			to.Spec.Content = "bye"
			_, err := c.PatchChanges(ctx, s, to)
			return err
		}},
		"finalizers":  {held, func(c *client.Client, s *Website) error { return c.SetFinalizers(ctx, s, []string{"example.com/a"}) }},
		"delete":      {dying, func(c *client.Client, s *Website) error { return c.Delete(ctx, s) }},
		"apply":       {"", func(c *client.Client, s *Website) error { return c.Apply(ctx, s) }},
		"apply child": {"", func(c *client.Client, s *Website) error { return c.ApplyChild(ctx, s, "me", nil) }},
		"apply of a map": {"", func(c *client.Client, s *Website) error {
			return c.Apply(ctx, map[string]any{"apiVersion": "example.com/v1", "kind": "Website", "metadata": map[string]any{"namespace": "prod", "name": "web"}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := thing("example.com/v1", "Website", row.extra, newer)
			informers, err := informer.NewSharedInformerFactory(&rest.Config{Host: "http://api.test", Transport: &script{}}, testScheme(t), informer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			loose := informer.ForKind(informers, websiteKind).Lister()
			c, _ := scripted(t, client.Options{Observer: informers, FieldOwner: "me"}, reply{body: answer})
			site := &Website{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web", UID: "u", ResourceVersion: "6"}}
			if err := row.call(c, site); err != nil {
				t.Fatal(err)
			}
			got, err := loose.Get(kube.KeyOf(site))
			if err != nil {
				t.Fatal(err)
			}
			spec, _, _ := unstructured.NestedMap(got.Object, "spec")
			if _, invented := got.Object["status"]; len(spec) != 2 || spec["newer"] != "keep me" || invented {
				t.Errorf("the cache has %v, want exactly the answer %s", got.Object, answer)
			}
		})
	}
}
