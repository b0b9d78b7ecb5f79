// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/simulate/doctor"

	"github.com/flyball-dev/flyball/examples/controllerruntime/internal/controller"
)

// classic is a client that spoils what the reconciler applies, as operators often do.
type classic struct {
	client.Client
	bug string
	new *sync.Map // whether the last pass has made the content of a page, by the page's key
}

const (
	generatedName = "a name is generated after a read of the cache"
	guarded       = "the Deployment is made only in the pass that makes the content"
	neverRemoved  = "a label is never removed"
)

func (c classic) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	switch of := obj.(type) {
	case *coreac.ConfigMapApplyConfiguration:
		return c.content(ctx, of, opts)
	case *appsac.DeploymentApplyConfiguration:
		return c.deployment(ctx, of, opts)
	}
	return c.Client.Apply(ctx, obj, opts...)
}

func (c classic) content(ctx context.Context, of *coreac.ConfigMapApplyConfiguration, opts []client.ApplyOption) error {
	key := client.ObjectKey{Namespace: *of.Namespace, Name: *of.Name}
	if c.bug == generatedName && key.Name != controller.Listed {
		all, labels := &corev1.ConfigMapList{}, client.MatchingLabels{"page": key.Name}
		if err := c.List(ctx, all, client.InNamespace(key.Namespace), labels); err != nil || len(all.Items) > 0 {
			return err
		}
		meta := metav1.ObjectMeta{Namespace: key.Namespace, GenerateName: key.Name + "-", Labels: labels}
		for _, owner := range of.OwnerReferences {
			meta.OwnerReferences = append(meta.OwnerReferences, metav1.OwnerReference{APIVersion: *owner.APIVersion, Kind: *owner.Kind, Name: *owner.Name, UID: *owner.UID})
		}
		return c.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta})
	}
	err := c.Get(ctx, key, &corev1.ConfigMap{})
	c.new.Store(key, apierrors.IsNotFound(err))
	return c.Client.Apply(ctx, of, opts...)
}

func (c classic) deployment(ctx context.Context, of *appsac.DeploymentApplyConfiguration, opts []client.ApplyOption) error {
	is := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: *of.Namespace, Name: *of.Name}}
	key := client.ObjectKeyFromObject(is)
	err := c.Get(ctx, key, is)
	if isNew, _ := c.new.Load(key); c.bug == guarded && apierrors.IsNotFound(err) && isNew != true {
		return nil
	}
	if err := c.Client.Apply(ctx, of, opts...); err != nil || c.bug != neverRemoved || *of.Spec.Replicas <= 2 {
		return err
	}
	return c.Patch(ctx, is, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"size":"large"}}}`)))
}

// with is the program without the bridge, with a bug.
func with(bug string) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{
			Scheme: scheme(), Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		})
		if err != nil {
			return err
		}
		if err := (&controller.PageReconciler{Client: classic{mgr.GetClient(), bug, &sync.Map{}}}).SetupWithManager(mgr); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

// Classic bugs are found by the first plans.
func TestDoctor_FindsClassicBugs(t *testing.T) {
	for bug, class := range map[string]doctor.Class{
		generatedName: doctor.TooMany, guarded: doctor.OtherEnd, neverRemoved: doctor.NotUndone,
	} {
		t.Run(strings.ReplaceAll(bug, " ", "-"), func(t *testing.T) {
			r := doctor.Examine(t, doctor.Operator{
				Main: with(bug), CRDs: []string{"../config/crd.yaml"}, Samples: []string{"../config/samples"}, First: true, MostPlans: 60,
			})
			for _, f := range r.Findings {
				t.Logf("%s|%s|%s|after %d plans|%v\n%s: %s", bug, f.Class, f.Pattern, f.After, r.Took.Round(time.Second/10), f.Text, f.Plan)
			}
			if !slices.ContainsFunc(r.Findings, func(f *doctor.Finding) bool { return f.Class == class }) {
				t.Errorf("there are %d findings, want one of class %q", len(r.Findings), class)
			}
		})
	}
}
