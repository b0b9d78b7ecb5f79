// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

// stepTimeout bounds one step of the demo: pulling the image on a real cluster takes time.
const stepTimeout = 3 * time.Minute

// runDemo runs the operator, and the demo beside it.
func runDemo(ctx context.Context, opts manager.Options, extra func(*manager.Manager) error) error {
	mgr, err := manager.New(opts)
	if err != nil {
		return err
	}
	if err := setup(mgr); err != nil {
		return err
	}
	if extra != nil {
		if err := extra(mgr); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	d := &demo{client: mgr.Client(), cache: mgr.Informers().Memory, began: time.Now(), done: func() { stop(errors.New("the demo is done")) }}
	if err := mgr.Add(d); err != nil {
		return err
	}
	if err := mgr.Run(ctx); err != nil {
		return err
	}
	if !d.finished {
		return errors.New("stopped before the demo was done")
	}
	return nil
}

// demo applies a sample, waits until its children and status are right, changes it, scales
// it, and deletes it.
type demo struct {
	client *client.Client
	cache  func() informer.Memory
	began  time.Time
	site   *webv1.Website

	done     func() // ends the manager
	finished bool   // read after the manager has ended
}

func (d *demo) Run(ctx context.Context) error {
	d.site = &webv1.Website{
		TypeMeta:   metav1.TypeMeta{APIVersion: webv1.GroupVersion.String(), Kind: "Website"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("demo-%x", d.began.UnixMilli())},
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"apply", func(ctx context.Context) error { return d.apply(ctx, "<h1>It balances.</h1>", 2) }},
		{"change", func(ctx context.Context) error { return d.apply(ctx, "<h1>It still balances.</h1>", 2) }},
		{"scale", func(ctx context.Context) error { return d.scale(ctx, "<h1>It still balances.</h1>", 3) }},
		{"delete", d.delete},
	} {
		if step.name == "delete" {
			d.printf("cache: %s", d.cache())
		}
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("demo: %s Website %s: %w", step.name, d.site.Name, err)
		}
	}
	d.printf("done: nothing is left but the events")
	d.finished = true
	d.done()
	return nil
}

// apply writes the desired state and waits until it is reached.
func (d *demo) apply(ctx context.Context, content string, replicas int32) error {
	wish := &webv1.Website{TypeMeta: d.site.TypeMeta, ObjectMeta: metav1.ObjectMeta{Namespace: d.site.Namespace, Name: d.site.Name}}
	wish.Spec = webv1.WebsiteSpec{Content: content, Replicas: &replicas}
	if err := d.client.Apply(ctx, wish, client.FieldOwner("website-demo")); err != nil {
		return err
	}
	d.printf("applied Website %s: %d replicas of %q", wish.Name, replicas, content)
	return d.await(ctx, content, replicas)
}

// scale changes the replicas as kubectl scale and autoscalers do.
func (d *demo) scale(ctx context.Context, content string, replicas int32) error {
	if err := d.client.SetScale(ctx, d.site, replicas); err != nil {
		return err
	}
	d.printf("scaled Website %s to %d replicas", d.site.Name, replicas)
	return d.await(ctx, content, replicas)
}

// await waits until the desired state is reached.
func (d *demo) await(ctx context.Context, content string, replicas int32) error {
	for _, child := range []struct {
		kind  string
		right func(context.Context) error
	}{
		{"ConfigMap", func(ctx context.Context) error { return d.pageIs(ctx, content) }},
		{"Deployment", func(ctx context.Context) error { return d.replicasAre(ctx, replicas) }},
		{"Service", func(ctx context.Context) error { return d.client.Get(ctx, d.key(), &corev1.Service{}) }},
		{"status", func(ctx context.Context) error { return d.statusIs(ctx, replicas) }},
	} {
		if err := wait(ctx, child.right); err != nil {
			return fmt.Errorf("wait for its %s: %w", child.kind, err)
		}
		d.printf("  its %s is right", child.kind)
	}
	d.printf("  %s is served: %s", d.site.Status.URL, meta.FindStatusCondition(d.site.Status.Conditions, conditionReady).Message)
	return nil
}

func (d *demo) delete(ctx context.Context) error {
	if err := d.client.Delete(ctx, d.site); err != nil {
		return err
	}
	d.printf("deleted Website %s", d.site.Name)
	for _, it := range []struct {
		kind string
		obj  kube.Object
	}{
		{"Website", &webv1.Website{}}, {"Service", &corev1.Service{}},
		{"Deployment", &appsv1.Deployment{}}, {"ConfigMap", &corev1.ConfigMap{}},
	} {
		if err := wait(ctx, func(ctx context.Context) error { return d.isGone(ctx, it.obj) }); err != nil {
			return fmt.Errorf("wait until the %s is gone: %w", it.kind, err)
		}
		d.printf("  the %s is gone", it.kind)
	}
	return nil
}

func (d *demo) pageIs(ctx context.Context, content string) error {
	var page corev1.ConfigMap
	if err := d.client.Get(ctx, d.key(), &page); err != nil {
		return err
	}
	if got := page.Data["index.html"]; got != content {
		return fmt.Errorf("the page is %q", got)
	}
	return nil
}

func (d *demo) replicasAre(ctx context.Context, want int32) error {
	var deployment appsv1.Deployment
	if err := d.client.Get(ctx, d.key(), &deployment); err != nil {
		return err
	}
	if got := *deployment.Spec.Replicas; got != want {
		return fmt.Errorf("it asks for %d replicas", got)
	}
	return nil
}

func (d *demo) statusIs(ctx context.Context, want int32) error {
	if err := d.client.Get(ctx, d.key(), d.site); err != nil {
		return err
	}
	ready := meta.FindStatusCondition(d.site.Status.Conditions, conditionReady)
	switch {
	case ready == nil:
		return errors.New("it has no Ready condition")
	case ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != d.site.Generation:
		return fmt.Errorf("condition Ready is %s of generation %d: %s", ready.Status, ready.ObservedGeneration, ready.Message)
	case d.site.Status.ReadyReplicas != want:
		return fmt.Errorf("%d of %d replicas are ready", d.site.Status.ReadyReplicas, want)
	}
	return nil
}

func (d *demo) isGone(ctx context.Context, obj kube.Object) error {
	err := d.client.Get(ctx, d.key(), obj)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return errors.New("it is still there")
}

func (d *demo) key() kube.Key { return kube.KeyOf(d.site) }

func (d *demo) printf(format string, args ...any) {
	fmt.Printf("%6.2fs  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// wait polls right until it returns nil; on a timeout, its last error is returned.
func wait(ctx context.Context, right func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := right(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: last seen: %w", ctx.Err(), err)
		}
	}
}
