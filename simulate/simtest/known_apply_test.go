// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// applier applies with a cache of Deployments beside it.
type applier struct {
	*simtest.Server
	t      *testing.T
	client *client.Client
	lister informer.Lister[*appsv1.Deployment]
	sent   atomic.Int64 // requests of the client that change something
	lose   atomic.Bool  // the next answer
}

// newApplier must be called in a bubble.
func newApplier(t *testing.T, opts informer.Options, more ...func(*informer.SharedInformerFactory)) *applier {
	t.Helper()
	a := &applier{Server: simtest.New(t, nil), t: t}
	factory, err := informer.NewSharedInformerFactory(a.Config, clientscheme.Scheme, opts)
	if err != nil {
		t.Fatal(err)
	}
	deployments := informer.For[*appsv1.Deployment](factory)
	for _, f := range more {
		f(factory)
	}
	a.lister = deployments.Lister()
	cfg := rest.CopyConfig(a.Config)
	cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return counting{next, a} }
	if a.client, err = client.New(cfg, clientscheme.Scheme, client.Options{Observer: factory, FieldOwner: "website"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- factory.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if _, err := factory.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // the watches are open
	return a
}

type counting struct {
	http.RoundTripper
	*applier
}

func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return c.RoundTripper.RoundTrip(req)
	}
	c.sent.Add(1)
	resp, err := c.RoundTripper.RoundTrip(req)
	if err == nil && c.lose.Swap(false) {
		_ = resp.Body.Close()
		return nil, errors.New("the answer got lost")
	}
	return resp, err
}

// caughtUp waits until the cache has what the server has.
func (a *applier) caughtUp() {
	a.t.Helper()
	synctest.Wait()
	var is appsv1.Deployment
	live := a.Client.Get(a.t.Context(), kube.Key{Namespace: "default", Name: "web"}, &is)
	held, cached := a.lister.Get(kube.Key{Namespace: "default", Name: "web"})
	if apierrors.IsNotFound(live) && apierrors.IsNotFound(cached) || live == nil && cached == nil && is.ResourceVersion == held.ResourceVersion {
		return
	}
	a.t.Fatal("the cache does not catch up")
}

// apply applies d and returns how many writes that took.
func (a *applier) apply(obj any, opts ...client.Option) int64 {
	a.t.Helper()
	before := a.sent.Load()
	if err := a.client.Apply(a.t.Context(), obj, append(opts, client.Force{}, client.IfChanged{})...); err != nil {
		a.t.Fatal(err)
	}
	return a.sent.Load() - before
}

// wish is one of some Deployments that differ in the fields that they claim.
func wish(variant int) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{"app": "web"}}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: fmt.Sprint("web:", variant%2), Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}
	if variant >= 2 {
		d.Spec.Replicas = new(int32(variant))
		d.Annotations = map[string]string{"variant": fmt.Sprint(variant)}
	}
	if variant >= 4 {
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "side", Image: "side", Env: []corev1.EnvVar{{Name: "A", Value: "a"}}})
	}
	return d
}

// foreign writes as others do. Errors are theirs.
var foreign = map[string]func(ctx context.Context, c *client.Client, n int) error{
	"status": func(ctx context.Context, c *client.Client, n int) error {
		return c.Status().Patch(ctx, wish(0), client.MergePatch(map[string]any{"status": map[string]any{"observedGeneration": n, "replicas": 9, "readyReplicas": n}}))
	},
	"label": func(ctx context.Context, c *client.Client, n int) error {
		return c.Patch(ctx, wish(0), client.MergePatch([]byte(fmt.Sprintf(`{"metadata":{"labels":{"theirs":"%d"}}}`, n))))
	},
	"our label": func(ctx context.Context, c *client.Client, n int) error {
		return c.Patch(ctx, wish(0), client.MergePatch([]byte(fmt.Sprintf(`{"metadata":{"labels":{"app":"%d"}}}`, n))))
	},
	"replicas": func(ctx context.Context, c *client.Client, n int) error {
		return c.Patch(ctx, wish(0), client.MergePatch([]byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))))
	},
	"scale": func(ctx context.Context, c *client.Client, n int) error { return c.SetScale(ctx, wish(0), int32(n)) },
	"annotation removed": func(ctx context.Context, c *client.Client, _ int) error {
		return c.Patch(ctx, wish(0), client.MergePatch([]byte(`{"metadata":{"annotations":null}}`)))
	},
	"order of containers": func(ctx context.Context, c *client.Client, _ int) error {
		var d appsv1.Deployment
		if err := c.Get(ctx, kube.KeyOf(wish(0)), &d); err != nil {
			return err
		}
		all := d.Spec.Template.Spec.Containers
		all[0], all[len(all)-1] = all[len(all)-1], all[0]
		return c.Update(ctx, &d)
	},
	"taken over": func(ctx context.Context, c *client.Client, n int) error {
		return c.Apply(ctx, wish(n), client.FieldOwner("other"), client.Force{})
	},
	"left": func(ctx context.Context, c *client.Client, _ int) error {
		return c.Apply(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}, client.FieldOwner("other"), client.Force{})
	},
	"changed and changed back": func(ctx context.Context, c *client.Client, n int) error {
		var d appsv1.Deployment
		if err := c.Get(ctx, kube.KeyOf(wish(0)), &d); err != nil {
			return err
		}
		image := func(image string) error {
			d.Spec.Template.Spec.Containers[0].Image = image
			return c.Update(ctx, &d)
		}
		was := d.Spec.Template.Spec.Containers[0].Image
		return errors.Join(image(fmt.Sprint("x:", n)), image(was))
	},
	"nobody's": func(ctx context.Context, c *client.Client, _ int) error {
		return c.Patch(ctx, wish(0), client.MergePatch([]byte(`{"metadata":{"managedFields":[{}]}}`)))
	},
	"a namesake, such as an older program": func(ctx context.Context, c *client.Client, n int) error {
		return c.Apply(ctx, wish(n), client.FieldOwner("website"), client.Force{})
	},
	"deleted": func(ctx context.Context, c *client.Client, _ int) error { return c.Delete(ctx, wish(0)) },
	"deleted and made again": func(ctx context.Context, c *client.Client, n int) error {
		return errors.Join(c.Delete(ctx, wish(0)), c.Create(ctx, wish(n)))
	},
}

// values returns what an object says, without bookkeeping.
func values(obj *appsv1.Deployment) *appsv1.Deployment {
	obj = kube.Copy(obj)
	obj.ManagedFields, obj.ResourceVersion = nil, ""
	return obj
}

// What an apply that was omitted would have done is asked of the server by a dry run.
func omitted(t *testing.T, seed uint64) (omitted int) {
	a := newApplier(t, informer.Options{})
	rehearsal := a.client.With(client.DryRun{}, client.Force{})
	r := rand.New(rand.NewPCG(seed, 0))
	var names []string
	for name := range foreign {
		names = append(names, name)
	}
	var history []string
	variant := 0
	for range 40 {
		switch r.IntN(4) {
		case 0:
			variant = r.IntN(6)
			fallthrough
		case 1, 2:
			d := wish(variant)
			sent := a.apply(d)
			history = append(history, fmt.Sprintf("apply %d: %d sent", variant, sent))
			if sent > 0 {
				continue
			}
			omitted++
			var is appsv1.Deployment
			if err := a.Client.Get(t.Context(), kube.KeyOf(d), &is); err != nil {
				t.Fatalf("seed %d: %v\nafter an apply that was omitted: %s", seed, err, strings.Join(history, ", "))
			}
			would := wish(variant)
			if err := rehearsal.Apply(t.Context(), would); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if !equality.Semantic.DeepEqual(values(&is), values(would)) {
				t.Fatalf("seed %d: the apply of %d was omitted, and would have made\n%v\nof\n%v\nafter: %s", seed, variant, values(would), values(&is), strings.Join(history, ", "))
			}
			if !equality.Semantic.DeepEqual(values(&is), values(d)) || d.ResourceVersion != is.ResourceVersion {
				t.Fatalf("seed %d: the object is set to\n%v\nnot to what is stored:\n%v", seed, d, &is)
			}
		case 3:
			name := names[r.IntN(len(names))]
			err := foreign[name](t.Context(), a.Client.With(client.FieldOwner("kubectl")), 1+r.IntN(4))
			history = append(history, fmt.Sprintf("%s: %v", name, err))
			a.caughtUp()
		}
	}
	return omitted
}

func TestKnown_OmittedApplyWouldHaveChangedNothing_C16(t *testing.T) {
	seeds, all := uint64(60), 0
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { all += omitted(t, seed) })
	}
	if all < int(seeds) {
		t.Errorf("%d applies were omitted in %d seeds; the test tests too little", all, seeds)
	}
}

func TestKnown_EachForeignWriteIsAnswered_C16(t *testing.T) {
	for name, write := range foreign {
		synctest.Test(t, func(t *testing.T) {
			a := newApplier(t, informer.Options{})
			if first, again := a.apply(wish(4)), a.apply(wish(4)); first != 1 || again != 0 {
				t.Fatalf("the first apply took %d writes, the second %d; want 1 and 0", first, again)
			}
			if err := write(t.Context(), a.Client.With(client.FieldOwner("kubectl")), 3); err != nil {
				t.Fatal(err)
			}
			a.caughtUp()
			want := int64(1)
			if name == "status" || name == "left" { // which changes nothing here
				want = 0
			}
			if got := a.apply(wish(4)); got != want {
				t.Errorf("%s: the next apply took %d writes, want %d", name, got, want)
			}
			if got := a.apply(wish(4)); got != 0 {
				t.Errorf("%s: the apply after took %d writes, want none", name, got)
			}
		})
	}
}

func TestKnown_WhatIsNotKnownIsSent_C16(t *testing.T) {
	transform := func(f *informer.SharedInformerFactory) {
		err := informer.For[*appsv1.Deployment](f).SetTransform(func(d *appsv1.Deployment) (*appsv1.Deployment, error) {
			d.Spec.Template.Spec = corev1.PodSpec{}
			return d, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	statusless := func(f *informer.SharedInformerFactory) {
		err := informer.For[*appsv1.Deployment](f).SetTransform(func(d *appsv1.Deployment) (*appsv1.Deployment, error) {
			d.Status = appsv1.DeploymentStatus{}
			return d, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	plain := func(a *applier) int64 { return a.apply(wish(2)) }
	for _, row := range []struct {
		name    string
		prepare []func(*informer.SharedInformerFactory)
		again   func(a *applier) int64 // after wish(2) was applied, and later
		want    int64
		later   time.Duration
	}{
		{"the same", nil, plain, 0, 0},
		{"another", nil, func(a *applier) int64 { return a.apply(wish(3)) }, 1, 0},
		{"an hour later", nil, plain, 1, time.Hour},
		{"a dry run", nil, func(a *applier) int64 { return a.apply(wish(2), client.DryRun{}) }, 1, 0},
		{"after a dry run of another", nil, func(a *applier) int64 { a.apply(wish(3), client.DryRun{}); return a.apply(wish(2)) }, 0, 0},
		{"another owner", nil, func(a *applier) int64 { return a.apply(wish(2), client.FieldOwner("other")) }, 1, 0},
		{"a precondition", nil, func(a *applier) int64 {
			d, err := a.lister.Get(kube.KeyOf(wish(2)))
			if err != nil {
				a.t.Fatal(err)
			}
			return a.apply(wish(2), client.Preconditions{UID: d.UID})
		}, 1, 0},
		{"after another without the option", nil, func(a *applier) int64 {
			if err := a.client.Apply(a.t.Context(), wish(4), client.Force{}); err != nil {
				a.t.Fatal(err)
			}
			return a.apply(wish(2))
		}, 1, 0},
		{"after another whose answer got lost", nil, func(a *applier) int64 {
			a.lose.Store(true)
			if err := a.client.Apply(a.t.Context(), wish(4), client.Force{}, client.IfChanged{}); err == nil {
				a.t.Fatal("the answer did not get lost")
			}
			return a.apply(wish(2))
		}, 1, 0},
		{"without the option", nil, func(a *applier) int64 {
			before := a.sent.Load()
			if err := a.client.Apply(a.t.Context(), wish(2), client.Force{}); err != nil {
				a.t.Fatal(err)
			}
			return a.sent.Load() - before
		}, 1, 0},
		{"a cache that a transform has thinned out", []func(*informer.SharedInformerFactory){transform}, plain, 1, 0},
		{"a cache without the status, after an apply by another owner", []func(*informer.SharedInformerFactory){statusless}, func(a *applier) int64 {
			d := wish(2)
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2}
			if err := a.client.Status().Apply(a.t.Context(), d, client.Force{}); err != nil {
				a.t.Fatal(err)
			}
			a.apply(wish(2)) // answered with the status
			a.apply(wish(2), client.FieldOwner("other"))
			return a.apply(wish(2))
		}, 1, 0},
		{"another Go type than the cache's", nil, func(a *applier) int64 {
			u := &unstructured.Unstructured{}
			var err error
			if u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(wish(2)); err != nil {
				a.t.Fatal(err)
			}
			u.SetAPIVersion("apps/v1")
			u.SetKind("Deployment")
			return min(a.apply(kube.Copy(u)), a.apply(kube.Copy(u)))
		}, 1, 0},
		{"an apply configuration", nil, func(a *applier) int64 {
			wanted := appsac.Deployment("web", "default").WithAnnotations(map[string]string{"a": "b"})
			if first := a.apply(wanted, client.FieldOwner("other")); first != 1 {
				a.t.Errorf("the first apply took %d writes, want 1", first)
			}
			return a.apply(wanted, client.FieldOwner("other"))
		}, 0, 0},
		{"a status", nil, func(a *applier) int64 {
			status := func() int64 {
				d, before := wish(2), a.sent.Load()
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2}
				if err := a.client.Status().Apply(a.t.Context(), d, client.Force{}, client.IfChanged{}); err != nil {
					a.t.Fatal(err)
				}
				return a.sent.Load() - before
			}
			if first := status(); first != 1 {
				a.t.Errorf("the first apply took %d writes, want 1", first)
			}
			return status() + a.apply(wish(2))
		}, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newApplier(t, informer.Options{}, row.prepare...)
			if first := a.apply(wish(2)); first != 1 {
				t.Fatalf("%s: the first apply took %d writes, want 1", row.name, first)
			}
			time.Sleep(row.later)
			if got := row.again(a); got != row.want {
				t.Errorf("%s: %d writes, want %d", row.name, got, row.want)
			}
		})
	}
}
