// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

var indices = regexp.MustCompile(`\[\d+\]`)

// full is a Deployment as the server has it.
func full() *appsv1.Deployment {
	d := deployment("prod", "web")
	d.UID, d.ResourceVersion, d.Generation = "u", "500", 3
	d.Annotations, d.Finalizers = map[string]string{"note": "n", "more": "m"}, []string{"example.com/f"}
	d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "me"}}
	d.Spec.Replicas, d.Spec.MinReadySeconds = new(int32(2)), 7
	d.Spec.Template.Labels = map[string]string{"app": "web"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i:1", Env: []corev1.EnvVar{{Name: "e", Value: "v"}}}, {Name: "d", Image: "i:2"}}
	d.Status = appsv1.DeploymentStatus{Replicas: 2, ReadyReplicas: 1, ObservedGeneration: 2, Conditions: []appsv1.DeploymentCondition{{Type: "Available", Status: "True"}}}
	return d
}

// projected returns a client whose informers keep only some fields of full(), and what their
// Lister has of it. like is of the Lister's type.
func projected(t testing.TB, like kube.Object, fields []string, answers ...reply) (*client.Client, *script, kube.Object) {
	t.Helper()
	informers, err := informer.NewSharedInformerFactory(&rest.Config{Host: "http://api.test", Transport: &script{}}, testScheme(t), informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	like.GetObjectKind().SetGroupVersionKind(deploymentKind)
	h := informer.ForObject(informers, like, informer.Scope{Fields: fields})
	if err := h.Err(); err != nil {
		t.Fatal(err)
	}
	informers.Observe(stored(t, deploymentKind, full()))
	held, err := h.Lister().Get(kube.KeyOf(full()))
	if err != nil {
		t.Fatal(err)
	}
	c, s := scripted(t, client.Options{Observer: informers, FieldOwner: "me"}, answers...)
	return c, s, held
}

func asReply(t testing.TB, obj kube.Object) reply {
	t.Helper()
	obj.GetObjectKind().SetGroupVersionKind(deploymentKind)
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return reply{body: string(text)}
}

func TestClient_ProjectedObjectIsNotWrittenWhole_D4(t *testing.T) {
	ctx := t.Context()
	for _, like := range []kube.Object{&appsv1.Deployment{}, &unstructured.Unstructured{}} {
		for _, fields := range [][]string{{"spec.replicas", "status.replicas"}, {"spec.replicas"}} {
			c, s, held := projected(t, like, fields)
			live := full()
			loose, err := runtime.DefaultUnstructuredConverter.ToUnstructured(held)
			if err != nil {
				t.Fatal(err)
			}
			converted := &unstructured.Unstructured{Object: loose}
			converted.SetGroupVersionKind(deploymentKind)
			unversioned := kube.Copy(held)
			unversioned.SetResourceVersion("")
			clone := kube.Copy(held)
			clone.SetName("clone")
			clone.SetResourceVersion("")
			changed := kube.Copy(held)
			changed.SetAnnotations(map[string]string{"a": "b"})
			before := kube.Copy(changed)
			calls := map[string]func() error{
				"update":                    func() error { return c.Update(ctx, changed) },
				"update without a version":  func() error { return c.Update(ctx, unversioned) },
				"update as another type":    func() error { return c.Update(ctx, converted) },
				"dry run":                   func() error { return c.Update(ctx, changed, client.DryRun{}) },
				"create of a clone":         func() error { return c.Create(ctx, clone) },
				"apply":                     func() error { return c.Apply(ctx, changed) },
				"merge patch of it":         func() error { return c.Patch(ctx, kube.Copy(held), client.MergePatch(changed)) },
				"strategic patch of it":     func() error { return c.Patch(ctx, kube.Copy(held), client.StrategicMergePatch(changed)) },
				"status update":             func() error { return c.Status().Update(ctx, changed) },
				"status update by a body":   func() error { return c.Status().Update(ctx, kube.Copy(held), client.Body{Object: changed}) },
				"status apply":              func() error { return c.Status().Apply(ctx, changed) },
				"status patch of it":        func() error { return c.Status().Patch(ctx, kube.Copy(held), client.MergePatch(changed)) },
				"update of its scale":       func() error { return c.SubResource("scale").Update(ctx, changed) },
				"confined":                  func() error { return c.With(client.InNamespace("prod")).Update(ctx, changed) },
				"create by mutate, a clone": func() error { return c.Create(ctx, kube.Copy(clone)) },
			}
			if _, typed := held.(*appsv1.Deployment); typed {
				value := *kube.Copy(changed).(*appsv1.Deployment)
				calls["apply of its value"] = func() error { return c.Apply(ctx, value) }
				calls["merge patch of its value"] = func() error { return c.Patch(ctx, kube.Copy(held), client.MergePatch(value)) }
				calls["patch from the live one"] = func() error { return c.Patch(ctx, changed, client.MergeFrom(live)) }
				calls["patch to the live one"] = func() error { return c.Patch(ctx, kube.Copy(live), client.MergeFrom(held)) }
				calls["changes from the live one"] = func() error { return second(c.PatchChanges(ctx, live, changed)) }
				calls["changes to the live one"] = func() error { return second(c.PatchChanges(ctx, held, kube.Copy(live))) }
			}
			for name, call := range calls {
				err := call()
				refused, ok := errors.AsType[*client.ProjectedObjectError](err)
				if !ok || refused.Kind != deploymentKind || !slices.Equal(refused.Fields, fields) {
					t.Errorf("%s of %T with the fields %q: %v, want a *ProjectedObjectError with the fields", name, held, fields, err)
					continue
				}
				for _, want := range []string{strings.Join(fields, ", "), "Apply a new object", "PatchChanges", "Get"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: error %q does not say %q", name, err, want)
					}
				}
			}
			if !reflect.DeepEqual(changed, before) {
				t.Errorf("a refused write has changed its object")
			}
			if got := len(s.requests()); got != 0 {
				t.Errorf("%d requests were sent, want none: %v", got, s.requests())
			}
		}
	}
}

// What is known of a projected object can be written, and so can whole objects.
func TestClient_ProjectedObjectIsChanged_D4(t *testing.T) {
	ok := asReply(t, full())
	c, s, obj := projected(t, &appsv1.Deployment{}, []string{"spec.replicas", "status", "metadata.annotations"}, slices.Repeat([]reply{ok}, 20)...)
	held, ctx := obj.(*appsv1.Deployment), t.Context()
	sent := 0
	for _, row := range []struct {
		name string
		call func() error
		body string // in the last request
	}{
		{"changes", func() error {
			to := kube.Copy(held)
			to.Spec.Replicas = new(int32(5))
			return second(c.PatchChanges(ctx, held, to))
		}, `{"metadata":{"uid":"u"},"spec":{"replicas":5}}`},
		{"changes of a kept list", func() error {
			to := kube.Copy(held)
			to.Finalizers = append(to.Finalizers, "example.com/g")
			return second(c.PatchChanges(ctx, held, to))
		}, `"finalizers":["example.com/f","example.com/g"]`},
		{"changes of the status", func() error {
			to := kube.Copy(held)
			to.Status.Conditions[0].Status = "False"
			return second(c.PatchChanges(ctx, held, to))
		}, `{"op":"add","path":"/status/conditions/0/status","value":"False"}`},
		{"patch from it", func() error {
			to := kube.Copy(held)
			to.Annotations["note"] = "x"
			return c.Patch(ctx, to, client.MergeFrom(held))
		}, `{"metadata":{"annotations":{"note":"x"}}}`},
		{"a merge patch", func() error {
			return c.Patch(ctx, kube.Copy(held), client.MergePatch(map[string]any{"spec": map[string]any{"paused": true}}))
		}, `{"spec":{"paused":true}}`},
		{"finalizers", func() error { return c.SetFinalizers(ctx, held, nil) }, `"finalizers":[]`},
		{"apply of a new object", func() error { return c.Apply(ctx, deployment("prod", "web")) }, `"name":"web"`},
		{"status apply", func() error {
			to := kube.Copy(held)
			to.Status.ReadyReplicas = 2
			return c.Status().Apply(ctx, to)
		}, `"readyReplicas":2`},
		{"status update", func() error { return c.Status().Update(ctx, kube.Copy(held)) }, ""},
		{"update of what was read", func() error {
			var live appsv1.Deployment
			if err := c.Get(ctx, kube.KeyOf(held), &live); err != nil {
				return err
			}
			sent++
			return c.Update(ctx, kube.Copy(&live))
		}, ""},
		{"update of an answer", func() error {
			to := kube.Copy(held)
			if err := c.Patch(ctx, to, client.MergePatch([]byte(`{}`))); err != nil {
				return err
			}
			sent++
			return c.Update(ctx, to)
		}, ""},
		{"delete", func() error { return c.Delete(ctx, held) }, ""},
	} {
		if err := row.call(); err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		if sent++; len(s.requests()) != sent {
			t.Fatalf("%s: %d requests, want %d", row.name, len(s.requests()), sent)
		}
		if got := s.requests()[sent-1].body; !strings.Contains(got, row.body) {
			t.Errorf("%s: sent %s, want %s in it", row.name, got, row.body)
		}
	}
}

func TestClient_PartOfAListIsNotReplaced_D4(t *testing.T) {
	c, s, obj := projected(t, &appsv1.Deployment{}, []string{"spec.template.spec.containers.image", "status.replicas"}, asReply(t, full()), asReply(t, full()))
	held, ctx := obj.(*appsv1.Deployment), t.Context()
	for path, change := range map[string]func(*appsv1.Deployment){
		"spec.template.spec.containers":  func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "i:3" },
		"spec.template.spec.tolerations": func(d *appsv1.Deployment) { d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "k"}} },
		"status.conditions":              func(d *appsv1.Deployment) { d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "New"}} },
	} {
		to := kube.Copy(held)
		change(to)
		for name, err := range map[string]error{
			"changes": second(c.PatchChanges(ctx, held, to)),
			"patch":   c.Patch(ctx, to, client.MergeFrom(held)),
		} {
			if refused, ok := errors.AsType[*client.ProjectedObjectError](err); !ok || refused.List != path || !strings.Contains(err.Error(), "the list "+path) {
				t.Errorf("%s of %s: %v, want a *ProjectedObjectError that names the list", name, path, err)
			}
		}
	}
	if len(s.requests()) > 0 {
		t.Fatalf("requests were sent: %v", s.requests())
	}
	// The zeros of a status that is not known are not sent.
	c, s, obj = projected(t, &appsv1.Deployment{}, []string{"status.updatedReplicas"}, asReply(t, full()))
	held = obj.(*appsv1.Deployment)
	to := kube.Copy(held)
	to.Status.UpdatedReplicas = 4
	if err := second(c.PatchChanges(ctx, held, to)); err != nil {
		t.Fatal(err)
	}
	if got, want := s.requests()[0].body, `{"metadata":{"uid":"u"},"status":{"updatedReplicas":4}}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// An apply is not omitted because of what the cache lacks.
func TestClient_ApplyIsSentIfTheCacheLacksFields_D4(t *testing.T) {
	bare := deployment("prod", "web") // nothing in it is dropped
	bare.UID, bare.ResourceVersion = "u", "501"
	for _, fields := range [][]string{{"spec", "status"}, nil} {
		applyTwice(t, bare, fields, map[bool]int{true: 1, false: 2}[fields == nil])
	}
}

// live is an informer factory whose watches are live.
type live struct {
	*informer.SharedInformerFactory
	deployments *informer.SharedInformer[*appsv1.Deployment]
}

func (l live) Cached(_ schema.GroupVersionKind, key kube.Key, _ kube.Object) kube.Object {
	obj, err := l.deployments.Lister().Get(key)
	if err != nil {
		return nil
	}
	return obj
}

func applyTwice(t *testing.T, bare *appsv1.Deployment, fields []string, want int) {
	informers, err := informer.NewSharedInformerFactory(&rest.Config{Host: "http://api.test", Transport: &script{}}, testScheme(t), informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	observer := live{informers, informer.For[*appsv1.Deployment](informers, informer.Scope{Fields: fields})}
	c, s := scripted(t, client.Options{Observer: observer, FieldOwner: "me"}, asReply(t, bare), asReply(t, bare))
	for range 2 {
		if err := c.Apply(t.Context(), deployment("prod", "web"), client.IfChanged{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(s.requests()); got != want {
		t.Errorf("%d of 2 applies were sent with the fields %q, want %d", got, fields, want)
	}
}

// Whatever is written of copies of a projected object, the server keeps what the informer has
// dropped, unless the change itself names it.
func TestClient_ProjectionLeaksIntoNoWrite_D4(t *testing.T) {
	paths := []string{
		"spec.replicas", "spec", "spec.template.spec.containers.image", "spec.template.spec.containers", "spec.template.metadata.labels",
		"metadata.annotations", "status", "status.replicas", "status.conditions.type", "metadata",
	}
	type change struct {
		named []string // paths that it changes
		do    func(d *appsv1.Deployment)
	}
	changes := []change{
		{nil, func(*appsv1.Deployment) {}},
		{[]string{"spec.replicas"}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) }},
		{[]string{"metadata.labels"}, func(d *appsv1.Deployment) { d.Labels = map[string]string{"new": "label"} }},
		{[]string{"metadata.annotations.x"}, func(d *appsv1.Deployment) { metav1.SetMetaDataAnnotation(&d.ObjectMeta, "x", "y") }},
		{[]string{"metadata.finalizers"}, func(d *appsv1.Deployment) { d.Finalizers = nil }},
		{[]string{"spec.template.spec.nodeName"}, func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeName = "n" }},
		{[]string{"status.replicas"}, func(d *appsv1.Deployment) { d.Status.Replicas = 8 }},
		{[]string{"spec.template.spec.containers.image"}, func(d *appsv1.Deployment) {
			for i := range d.Spec.Template.Spec.Containers {
				d.Spec.Template.Spec.Containers[i].Image = "i:9"
			}
		}},
		{[]string{"status.conditions"}, func(d *appsv1.Deployment) {
			d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: "New"})
		}},
	}
	writes := map[string]func(ctx context.Context, c *client.Client, from, to *appsv1.Deployment) error{
		"update": func(ctx context.Context, c *client.Client, _, to *appsv1.Deployment) error { return c.Update(ctx, to) },
		"status update": func(ctx context.Context, c *client.Client, _, to *appsv1.Deployment) error {
			return c.Status().Update(ctx, to)
		},
		"apply": func(ctx context.Context, c *client.Client, _, to *appsv1.Deployment) error {
			return c.Apply(ctx, to, client.Force{})
		},
		"status apply": func(ctx context.Context, c *client.Client, _, to *appsv1.Deployment) error {
			return c.Status().Apply(ctx, to, client.Force{})
		},
		"changes": func(ctx context.Context, c *client.Client, from, to *appsv1.Deployment) error {
			return second(c.PatchChanges(ctx, from, to))
		},
		"patch": func(ctx context.Context, c *client.Client, from, to *appsv1.Deployment) error {
			return c.Patch(ctx, to, client.MergeFrom(from))
		},
		"live patch": func(ctx context.Context, c *client.Client, _, to *appsv1.Deployment) error {
			return c.Patch(ctx, to, client.MergeFrom(full()))
		},
	}
	random, sent := rand.New(rand.NewPCG(4, 4)), map[string]int{}
	for range 600 {
		var kept []string
		for _, path := range paths {
			if random.IntN(4) == 0 {
				kept = append(kept, path)
			}
		}
		if kept == nil {
			kept = []string{"spec.paused"}
		}
		c, s, obj := projected(t, &appsv1.Deployment{}, kept, asReply(t, full()), asReply(t, full()))
		from := obj.(*appsv1.Deployment)
		to, did := kube.Copy(from), changes[random.IntN(len(changes))]
		did.do(to)
		for name, write := range writes {
			before := len(s.requests())
			err := write(t.Context(), c, from, kube.Copy(to))
			if _, refused := errors.AsType[*client.ProjectedObjectError](err); refused && len(s.requests()) > before {
				t.Fatalf("%s with the fields %q is refused and sent", name, kept)
			}
			for _, r := range s.requests()[before:] {
				sent[name]++
				if lost := lostBy(t, r, did.named); len(lost) > 0 {
					t.Fatalf("%s with the fields %q of a change of %q: the server loses %q by %s %s %s", name, kept, did.named, lost, r.method, r.path, r.body)
				}
			}
		}
	}
	for _, name := range []string{"status update", "status apply", "changes", "patch"} {
		if sent[name] < 20 {
			t.Errorf("%d requests of %s were sent, too few to say anything", sent[name], name)
		}
	}
	for _, name := range []string{"update", "apply", "live patch"} {
		if sent[name] > 0 {
			t.Errorf("%d requests of %s were sent, want none", sent[name], name)
		}
	}
}

// lostBy returns the leaves of full() that a request removes or changes, but for those
// named.
func lostBy(t *testing.T, r request, named []string) (lost []string) {
	t.Helper()
	var before, body map[string]any
	sent := r.body
	if strings.Contains(r.header.Get("Content-Type"), "json-patch") {
		result, err := patched([]byte(asReply(t, full()).body), []byte(r.body), r.header.Get("Content-Type"))
		if err != nil {
			t.Fatal(err)
		}
		sent = string(result)
	}
	for text, into := range map[string]*map[string]any{asReply(t, full()).body: &before, sent: &body} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			// A status update of a built-in kind is protobuf.
			var d appsv1.Deployment
			at := strings.Index(text, "\n")
			if at < 0 || !strings.HasPrefix(text, "k8s") {
				t.Fatal(err)
			}
			var unknown runtime.Unknown
			if err := unknown.Unmarshal([]byte(text)[4:]); err != nil {
				t.Fatal(err)
			}
			if err := d.Unmarshal(unknown.Raw); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(asReply(t, &d).body), into); err != nil {
				t.Fatal(err)
			}
		}
	}
	after := leaves(before, "")
	status := strings.HasSuffix(r.path, "/status")
	switch {
	case sent != r.body:
		after = leaves(body, "")
	case r.method == "PATCH" && strings.Contains(r.header.Get("Content-Type"), "merge-patch"):
		after = leaves(merged(before, body), "")
	case r.method == "PATCH": // the owner has applied all before
		for path := range after {
			if status == strings.HasPrefix(path, "status") {
				delete(after, path)
			}
		}
		for path, v := range leaves(body, "") {
			after[path] = v
		}
	case r.method == "PUT":
		for path := range after {
			if !status || strings.HasPrefix(path, "status") || strings.HasPrefix(path, "metadata") {
				delete(after, path)
			}
		}
		for path, v := range leaves(body, "") {
			if !status || strings.HasPrefix(path, "status") || strings.HasPrefix(path, "metadata") {
				after[path] = v
			}
		}
	}
	for path, v := range leaves(before, "") {
		plain := indices.ReplaceAllString(path, "")
		free := strings.HasPrefix(plain, "metadata.managedFields") || slices.ContainsFunc(named, func(n string) bool { return plain == n || strings.HasPrefix(plain, n+".") })
		if now, ok := after[path]; !free && (!ok || !reflect.DeepEqual(now, v)) {
			lost = append(lost, fmt.Sprintf("%s=%v", path, v))
		}
	}
	slices.Sort(lost)
	return lost
}

// leaves returns the scalars of a tree by path.
func leaves(tree any, path string) map[string]any {
	out := map[string]any{}
	switch v := tree.(type) {
	case map[string]any:
		for name, value := range v {
			for p, leaf := range leaves(value, strings.TrimPrefix(path+"."+name, ".")) {
				out[p] = leaf
			}
		}
	case []any:
		for i, value := range v {
			for p, leaf := range leaves(value, fmt.Sprintf("%s[%d]", path, i)) {
				out[p] = leaf
			}
		}
	case nil:
	default:
		out[path] = v
	}
	return out
}

// merged is RFC 7386.
func merged(target, patch map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range target {
		out[name] = v
	}
	for name, v := range patch {
		inner, is := v.(map[string]any)
		was, _ := out[name].(map[string]any)
		switch {
		case v == nil:
			delete(out, name)
		case is:
			out[name] = merged(was, inner)
		default:
			out[name] = v
		}
	}
	return out
}
