// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// observed returns a client whose writes the factory of w sees.
func observed(w *world) *client.Client {
	w.T.Helper()
	c, err := client.New(w.Config, w.Scheme, client.Options{Observer: w.factory, FieldOwner: "test", Logger: w.logger()})
	w.Must(err)
	return c
}

// reading reads a ConfigMap: its value, gone or pending.
func reading(maps *informer.SharedInformer[cmap], name string) string {
	obj, err := maps.Lister().Get(key(name))
	switch {
	case apierrors.IsNotFound(err):
		return "gone"
	case isNotSettled(err):
		return "pending"
	case err != nil:
		return err.Error()
	}
	return obj.Data["v"]
}

func isNotSettled(err error) bool {
	_, ok := errors.AsType[*kube.NotSettledError](err)
	return ok
}

// The server carries out a write, and the answer is lost. No read shows the state before it,
// though watches are late, and one read from the server settles it.
func TestInformer_LostAnswersAreSettled_A32(t *testing.T) {
	for name, row := range map[string]struct {
		write func(ctx context.Context, w *world, c *client.Client) error
		want  string
	}{
		"update": {func(ctx context.Context, w *world, c *client.Client) error {
			return c.Update(ctx, asStored(w, configMap("a", "2")))
		}, "2"},
		"patch": {func(ctx context.Context, w *world, c *client.Client) error {
			return c.Patch(ctx, configMap("a", ""), client.MergePatch([]byte(`{"data":{"v":"2"}}`)))
		}, "2"},
		"apply": {func(ctx context.Context, w *world, c *client.Client) error {
			return c.Apply(ctx, configMap("a", "2"), client.Force{})
		}, "2"},
		"delete": {func(ctx context.Context, w *world, c *client.Client) error { return c.Delete(ctx, configMap("a", "")) }, "gone"},
		"create": {func(ctx context.Context, w *world, c *client.Client) error {
			return c.Create(ctx, configMap("new", "2"))
		}, "2"},
		"delete all of": {func(ctx context.Context, w *world, c *client.Client) error {
			return client.DeleteAllOf[cmap](ctx, c, client.InNamespace("ns"))
		}, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				w.Store(configMap("a", "1"), configMap("b", "1"))
				maps := informer.For[cmap](w.factory)
				start(w)
				pass(time.Second)
				c := observed(w)
				of, before := "a", "1"
				if name == "create" {
					of, before = "new", "gone"
				}
				w.LagKindTo(configMaps, w.Revision())
				reads := w.asked("list", "metadata.name")
				w.LoseResponse(1)
				if err := row.write(w.ctx, w, c); err == nil {
					t.Fatal("the answer was not lost; this test tests nothing")
				}
				if got := reading(maps, of); got == before {
					t.Errorf("read %q, the state before the write", got)
				}
				pass(time.Second)
				if got := reading(maps, of); got != row.want {
					t.Errorf("read %q a second after the write, want %q", got, row.want)
				}
				if name != "delete all of" {
					if n := w.asked("list", "metadata.name") - reads; n != 1 {
						t.Errorf("%d reads from the server, want 1", n)
					}
				}
				w.CatchUpKind(configMaps)
				pass(time.Minute)
				if got := reading(maps, of); got != row.want {
					t.Errorf("read %q when the watch had caught up, want %q", got, row.want)
				}
			})
		})
	}
}

// While the server is away a key stays pending: reads of it and lists of its namespace say
// so, and other reads are not affected.
func TestInformer_PendingUntilTheServerAnswers_I12(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		other := configMap("a", "1")
		other.Namespace = "other"
		w.Store(configMap("a", "1"), configMap("b", "1"), other)
		maps := informer.For[cmap](w.factory)
		start(w)
		pass(time.Second)
		c := observed(w)
		w.Must(c.Get(w.ctx, key("a"), configMap("", ""))) // opens the connection
		list := func(opts informer.QueryOptions) error { _, err := maps.Lister().List(opts); return err }
		w.LoseResponse(1)
		w.Network.Refuse(true) // new connections alone
		if err := c.Update(w.ctx, asStored(w, configMap("a", "2"))); err == nil {
			t.Fatal("the answer was not lost; this test tests nothing")
		}
		w.Network.Cut()
		for range 3 {
			pass(time.Minute)
			if got := reading(maps, "a"); got != "pending" {
				t.Errorf("read %q of what was written, want pending", got)
			}
		}
		if got := reading(maps, "b"); got != "1" {
			t.Errorf("read %q of another key, want 1", got)
		}
		if err := list(informer.QueryOptions{Namespace: "other"}); err != nil {
			t.Errorf("list of another namespace: %v", err)
		}
		for _, opts := range []informer.QueryOptions{{}, {Namespace: "ns"}} {
			if err := list(opts); !isNotSettled(err) {
				t.Errorf("list %+v: %v, want *NotSettledError", opts, err)
			}
			opts.Unsynced = true
			if err := list(opts); err != nil {
				t.Errorf("list %+v: %v, want what is known", opts, err)
			}
		}
		_, err := maps.Lister().Get(key("a"))
		pending, ok := errors.AsType[*kube.NotSettledError](err)
		if !ok {
			t.Fatal(err)
		}
		settled := make(chan string, 2)
		pending.WhenPassed(func() { settled <- reading(maps, "a") })
		pending.WhenPassed(func() { settled <- "stopped" })()
		if n := maps.Snapshot().Awaiting; n != 1 {
			t.Errorf("the snapshot counts %d pending keys, want 1", n)
		}
		w.Network.Refuse(false)
		pass(time.Minute)
		if got := <-settled; got != "2" || len(settled) != 0 {
			t.Errorf("the waiter read %q, want 2, and no other ran", got)
		}
		if n := maps.Snapshot().Awaiting; n != 0 {
			t.Errorf("the snapshot counts %d pending keys, want none", n)
		}
	})
}

// Answers that do not show the object.
func TestInformer_AnswersOfAnotherKindAreSettled_A33(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		one := int32(1)
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}},
		}}
		w.Store(configMap("a", "1"), d)
		maps, deployments := informer.For[cmap](w.factory), informer.For[*appsv1.Deployment](w.factory)
		start(w)
		pass(time.Second)
		c := observed(w)
		w.LagTo(w.Revision())

		w.Must(c.SubResource("scale").Update(w.ctx, d, client.Body{Object: &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Spec: autoscalingv1.ScaleSpec{Replicas: 5},
		}}))
		if got, err := deployments.Lister().Get(key("a")); err == nil && *got.Spec.Replicas != 5 {
			t.Errorf("after a scale: %d replicas, the state before it", *got.Spec.Replicas)
		}
		meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
		meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		w.Must(c.Patch(w.ctx, meta, client.MergePatch([]byte(`{"metadata":{"labels":{"a":"b"}}}`))))
		if got, err := maps.Lister().Get(key("a")); err == nil && got.Labels["a"] != "b" {
			t.Errorf("after a patch of metadata: labels %v, the state before it", got.Labels)
		}
		pass(time.Second)
		if got, err := deployments.Lister().Get(key("a")); err != nil || *got.Spec.Replicas != 5 {
			t.Errorf("a second after the scale: %v, %v, want 5 replicas", got, err)
		}
		if got, err := maps.Lister().Get(key("a")); err != nil || got.Labels["a"] != "b" || got.Data["v"] != "1" {
			t.Errorf("a second after the patch: %v, %v, want the label and the data", got, err)
		}
	})
}

// A reconciler that makes one child with a generated name, and loses the answer, makes no
// second one.
func TestPath_LostCreateMakesOneChild_R12_A32(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("parent", "1"))
		maps, children := informer.For[cmap](w.factory), informer.For[*corev1.Secret](w.factory)
		c := observed(w)
		loop := reconcile.New("maker", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			if _, err := maps.Lister().Get(key); err != nil {
				return reconcile.Result{}, reconcile.IgnoreNotFound(err)
			}
			all, err := children.Lister().List(informer.QueryOptions{Namespace: key.Namespace})
			if err != nil || len(all) > 0 {
				return reconcile.Result{}, err
			}
			err = c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, GenerateName: "child-"}})
			w.Network.Refuse(true) // so that nothing tells meanwhile whether it was created
			w.Network.Cut()
			return reconcile.Result{}, err
		}, reconcile.Options{})
		loop.Watch(source.Kind(maps, source.Self))
		w.LagKindTo(schema.GroupResource{Resource: "secrets"}, w.Revision())
		w.LoseResponse(1)
		start(w)
		w.group.Go(func() {
			if err := loop.Run(w.ctx); err != nil {
				t.Error(err)
			}
		})
		pass(time.Minute)
		w.Network.Refuse(false)
		pass(time.Minute)
		w.Store(configMap("parent", "2"))
		pass(time.Minute)
		if n := len(w.Objects(schema.GroupResource{Resource: "secrets"})); n != 1 {
			t.Errorf("%d children, want 1", n)
		}
		if got := loop.Snapshot().Outcomes; got[reconcile.OutcomeError] != 1 || got[reconcile.OutcomeDone] < 2 {
			t.Errorf("the reconciles ended %v, want one error, for the lost answer", fmt.Sprint(got))
		}
	})
}

// A key that waits while the server is away does not poll, and runs as soon as the state is
// known.
func TestPath_ParkedKeyRunsWhenTheServerIsBack_R12(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		maps := informer.For[cmap](w.factory)
		c := observed(w)
		wrote, known := false, time.Time{}
		loop := reconcile.New("writer", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			if _, err := maps.Lister().Get(key); err != nil {
				return reconcile.Result{}, err
			}
			if wrote {
				known = time.Now()
				return reconcile.Result{}, nil
			}
			wrote = true
			w.Must(c.Get(ctx, key, configMap("", ""))) // opens the connection
			w.LoseResponse(1)
			w.Network.Refuse(true)
			err := c.Update(ctx, asStored(w, configMap("a", "2")))
			w.Network.Cut()
			return reconcile.Result{}, err
		}, reconcile.Options{})
		loop.Watch(source.Kind(maps, source.Self))
		start(w)
		w.group.Go(func() {
			if err := loop.Run(w.ctx); err != nil {
				t.Error(err)
			}
		})
		pass(9 * time.Minute)
		if n := loop.Snapshot().Outcomes[reconcile.OutcomeConflict]; n != 1 {
			t.Errorf("%d reconciles found that the effect is not known, want 1", n)
		}
		back := time.Now()
		w.Network.Refuse(false)
		pass(2 * time.Minute)
		if reading(maps, "a") != "2" || known.IsZero() || known.Sub(back) > 50*time.Second {
			t.Errorf("read %s; the key ran again %v after the server was back, want once the state was known, within the pause between two reads", reading(maps, "a"), known.Sub(back))
		}
	})
}

// asStored returns obj with the version that the server has.
func asStored(w *world, obj cmap) cmap {
	for _, is := range w.Objects(configMaps) {
		if is.GetNamespace() == obj.Namespace && is.GetName() == obj.Name {
			obj.ResourceVersion = is.GetResourceVersion()
		}
	}
	return obj
}
