// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	reconcilers "sigs.k8s.io/controller-runtime/pkg/reconcile"

	flyclient "github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/internal/testing/habits"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// theirs is the Client of habits by controller-runtime's.
type theirs struct {
	client.Client
	other client.Client
}

func (c theirs) Child(ctx context.Context, key kube.Key) (*corev1.ConfigMap, error) {
	obj := &corev1.ConfigMap{}
	return obj, c.Get(ctx, key, obj)
}

func (c theirs) Create(ctx context.Context, obj kube.Object) error {
	return c.Client.Create(ctx, obj)
}

func (c theirs) Update(ctx context.Context, obj kube.Object) error {
	return c.Client.Update(ctx, obj)
}

func (c theirs) UpdateElsewhere(ctx context.Context, obj kube.Object) error {
	return c.other.Update(ctx, obj)
}

func (c theirs) UpdateStatus(ctx context.Context, obj kube.Object) error {
	return c.Status().Update(ctx, obj)
}

func (c theirs) Patch(ctx context.Context, obj kube.Object, patch string) error {
	return c.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func (c theirs) PatchStatus(ctx context.Context, obj kube.Object, patch string) error {
	return c.Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func (c theirs) PatchChanges(ctx context.Context, from, to kube.Object) error {
	status := to.DeepCopyObject().(client.Object)
	if err := c.Client.Patch(ctx, to, client.MergeFrom(from)); err != nil {
		return err
	}
	if _, ok := to.(*appsv1.Deployment); !ok {
		return nil
	}
	return c.Status().Patch(ctx, status, client.MergeFrom(from))
}

func (c theirs) SetFinalizers(ctx context.Context, obj kube.Object, finalizers []string) error {
	to := obj.DeepCopyObject().(client.Object)
	to.SetFinalizers(finalizers)
	return c.Client.Update(ctx, to)
}

func (c theirs) Apply(ctx context.Context, child *corev1.ConfigMap, _ bool) error {
	applied := coreac.ConfigMap(child.Name, child.Namespace)
	for _, o := range child.OwnerReferences {
		applied.WithOwnerReferences(metaac.OwnerReference().WithAPIVersion(o.APIVersion).WithKind(o.Kind).WithName(o.Name).WithUID(o.UID).
			WithController(*o.Controller).WithBlockOwnerDeletion(*o.BlockOwnerDeletion))
	}
	return c.Client.Apply(ctx, applied, client.FieldOwner("habits"), client.ForceOwnership)
}

func (c theirs) ApplyStatus(ctx context.Context, d *appsac.DeploymentApplyConfiguration) error {
	return c.Status().Apply(ctx, d, client.FieldOwner("habits"), client.ForceOwnership)
}

func (c theirs) CreateOrUpdate(ctx context.Context, child *corev1.ConfigMap) error {
	is := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: child.Namespace, Name: child.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.Client, is, func() error {
		is.OwnerReferences, is.Data = child.OwnerReferences, child.Data
		return nil
	})
	return err
}

func (c theirs) Delete(ctx context.Context, obj kube.Object, uid, version string) error {
	var p client.Preconditions
	if uid != "" {
		p.UID = new(types.UID(uid))
	}
	if version != "" {
		p.ResourceVersion = new(version)
	}
	return c.Client.Delete(ctx, obj, p)
}

func (c theirs) ApplyChildren(ctx context.Context, _ *appsv1.Deployment, children ...kube.Object) error {
	for _, obj := range children {
		if err := c.CreateOrUpdate(ctx, obj.(*corev1.ConfigMap)); err != nil {
			return err
		}
	}
	return nil
}

// habitual returns a manager with a controller of the habits.
func habitual(t *testing.T, cfg *rest.Config, name string, with func(ctrl.Options) ctrl.Options) ctrl.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, with(ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(),
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}))
	if err != nil {
		t.Fatal(err)
	}
	other, err := client.New(cfg, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		t.Fatal(err)
	}
	c := theirs{mgr.GetClient(), other}
	reconcile := func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, req.NamespacedName, d); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		return ctrl.Result{}, habits.Reconcile(ctx, c, d)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("habits-" + name).For(&appsv1.Deployment{}).
		Owns(&corev1.ConfigMap{}).Complete(reconcilers.Func(reconcile))
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// Reconcilers that make one step and return come to their end, through the bridge as with
// controller-runtime alone.
func TestHabits_ComeToTheirEnd_R15(t *testing.T) {
	for name, with := range map[string]func(ctrl.Options) ctrl.Options{
		"bridge":             func(o ctrl.Options) ctrl.Options { return Options(o) },
		"controller-runtime": func(o ctrl.Options) ctrl.Options { return o },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simtest.New(t, nil)
				if err := habits.Seed(t.Context(), s.Client, "default"); err != nil {
					t.Fatal(err)
				}
				mgr := habitual(t, s.Config, name, with)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- mgr.Start(ctx) }()
				time.Sleep(time.Hour)
				if got, err := habits.Unfinished(t.Context(), s.Client, "default"); err != nil || len(got) > 0 {
					t.Errorf("unfinished after an hour: %q, %v", got, err)
				}
				// A watch of controller-runtime that is canceled may leave a goroutine behind, so none is left.
				s.Overload(math.MaxInt, http.StatusServiceUnavailable, 0)
				for _, r := range s.Watched() {
					s.CloseWatches(r)
				}
				synctest.Wait()
				cancel()
				if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("the manager ended with %v", err)
				}
			})
		})
	}
}

// realServer returns the configuration of a real server, which ends with the test.
func realServer(t *testing.T) *rest.Config {
	t.Helper()
	env, err := envtest.Start(t.Context(), envtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return env.Config()
}

// The same on a real server, by the bridge.
func TestHabits_ComeToTheirEndOnARealServer_R15(t *testing.T) {
	cfg := realServer(t)
	outside, err := flyclient.New(cfg, clientscheme.Scheme, flyclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := habits.Seed(t.Context(), outside, "default"); err != nil {
		t.Fatal(err)
	}
	mgr := habitual(t, cfg, "real", func(o ctrl.Options) ctrl.Options { return Options(o) })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	var left []string
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var err error
		left, err = habits.Unfinished(ctx, outside, "default")
		return len(left) == 0, err
	})
	if err != nil {
		t.Errorf("unfinished: %q, %v", left, err)
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the manager ended with %v", err)
	}
}
