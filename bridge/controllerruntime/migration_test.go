// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"
	"github.com/flyball-dev/flyball/bridge/controllerruntime/adopt"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
	"github.com/flyball-dev/flyball/source"
)

// reconciler is written for controller-runtime: a Secret for each ConfigMap. No step of the migration changes it.
type reconciler struct {
	client.Client
	events events.EventRecorder
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cm := &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	created, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		secret.StringData = nil
		return controllerutil.SetControllerReference(cm, secret, r.Scheme())
	})
	if created == controllerutil.OperationResultCreated {
		r.events.Eventf(cm, secret, corev1.EventTypeNormal, "Created", "Create", "created the Secret %s", secret.Name)
	}
	return ctrl.Result{}, err
}

func setup(mgr ctrl.Manager) error {
	r := &reconciler{Client: mgr.GetClient(), events: mgr.GetEventRecorder("secrets")}
	return ctrl.NewControllerManagedBy(mgr).Named("secrets").For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).
		WithOptions(controller.Options{SkipNameValidation: new(true)}).Complete(r)
}

func runWithOneLine(ctx context.Context, cfg *rest.Config, opts ctrl.Options) error {
	mgr, err := ctrl.NewManager(cfg, bridge.Options(opts)) // the one line
	if err != nil {
		return err
	}
	if err := setup(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func runWithProbesAndFence(ctx context.Context, cfg *rest.Config, opts ctrl.Options) error {
	fenced, opts, err := bridge.Fence(cfg, bridge.Options(opts))
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(fenced, opts)
	if err != nil {
		return err
	}
	if err := bridge.AddHealthz(mgr); err != nil {
		return err
	}
	if err := setup(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func runBothManagers(ctx context.Context, opts manager.Options) error {
	mgr, err := manager.New(opts)
	if err != nil {
		return err
	}
	old, err := ctrl.NewManager(mgr.Config(), bridge.Options(ctrl.Options{
		Scheme:   mgr.Scheme(),
		NewCache: bridge.CacheOf(mgr.Informers()),
		Metrics:  metricsserver.Options{BindAddress: "0"},
	}))
	if err != nil {
		return err
	}
	if err := setup(old); err != nil { // the controllers that have not moved
		return err
	}
	if err := setupMoved(mgr); err != nil { // those that have
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(old.Start)); err != nil {
		return err
	}
	return mgr.Run(ctx)
}

// setupMoved has a controller of ours: it labels the Secrets.
func setupMoved(mgr *manager.Manager) error {
	secrets := informer.For[*corev1.Secret](mgr.Informers())
	return mgr.Add(reconcile.For(secrets, func(ctx context.Context, s *corev1.Secret) (reconcile.Result, error) {
		labelled := kube.Copy(s)
		metav1.SetMetaDataLabel(&labelled.ObjectMeta, "moved", "yes")
		_, err := mgr.Client().PatchChanges(ctx, s, labelled)
		return reconcile.Result{}, err
	}, reconcile.Options{}))
}

func setupAdopted(mgr *manager.Manager) error {
	cl, err := adopt.NewClient(mgr)
	if err != nil {
		return err
	}
	r := &reconciler{Client: cl, events: adopt.Recorders(mgr).GetEventRecorder("secrets")}
	configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())
	secrets := informer.For[*corev1.Secret](mgr.Informers())

	c := reconcile.New("secrets", adopt.Reconciler(r), reconcile.Options{})
	c.Watch(source.Kind(configMaps, source.Self))
	c.Watch(adopt.Handler(secrets,
		handler.EnqueueRequestForOwner(mgr.Scheme(), mgr.RESTMapper(), &corev1.ConfigMap{}),
		predicate.ResourceVersionChangedPredicate{}))
	return mgr.Add(c)
}

// The steps of docs/migration.md, each from the same server: the reconciler does its work in all of them.
func TestMigration_EachStepRunsTheSameReconciler(t *testing.T) {
	theirs := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
	elected := theirs
	elected.LeaderElection, elected.LeaderElectionID, elected.LeaderElectionNamespace = true, "secrets", "default"
	ours := func(cfg *rest.Config) manager.Options {
		return manager.Options{Config: cfg, Logger: logr.Discard(), MetricsAddress: "0", HealthAddress: "0"}
	}
	for name, run := range map[string]func(context.Context, *rest.Config) error{
		"one line": func(ctx context.Context, cfg *rest.Config) error { return runWithOneLine(ctx, cfg, theirs) },
		"probes and fence": func(ctx context.Context, cfg *rest.Config) error {
			return runWithProbesAndFence(ctx, cfg, elected)
		},
		"both managers": func(ctx context.Context, cfg *rest.Config) error { return runBothManagers(ctx, ours(cfg)) },
		"adopted": func(ctx context.Context, cfg *rest.Config) error {
			mgr, err := manager.New(ours(cfg))
			if err != nil {
				return err
			}
			if err := setupAdopted(mgr); err != nil {
				return err
			}
			return mgr.Run(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := simtest.New(t, nil, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- run(ctx, server.Config) }()
				time.Sleep(time.Minute)
				secret := &corev1.Secret{}
				if err := server.Client.Get(t.Context(), kube.Key{Namespace: "default", Name: "a"}, secret); err != nil {
					t.Errorf("the reconciler has not worked: %v", err)
				}
				if name == "both managers" && secret.Labels["moved"] != "yes" {
					t.Error("the controller that has moved has not worked")
				}
				cancel()
				if err := <-ended; err != nil {
					t.Errorf("the manager ended with %v", err)
				}
			})
		})
	}
}
