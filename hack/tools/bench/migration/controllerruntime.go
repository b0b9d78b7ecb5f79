// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

// controller-runtime's envtest 0.25 does not compile for Windows.

package migration

import (
	"context"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func runManager(scheme *runtime.Scheme) error {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		LeaderElection:         true,
		LeaderElectionID:       "backup.example.dev",
		HealthProbeBindAddress: ":8081",
		Metrics:                metricsserver.Options{BindAddress: ":8080"},
		Cache:                  cache.Options{DefaultNamespaces: map[string]cache.Config{"prod": {}}},
	})
	if err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := setup(mgr); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func setup(mgr ctrl.Manager) error {
	r := &reconciler{Client: mgr.GetClient(), events: mgr.GetEventRecorder("backup")}
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &batchv1.Job{}, "suspended", suspended)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&batchv1.CronJob{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&batchv1.Job{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(cronJobsOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
}

func suspended(obj client.Object) []string {
	job := obj.(*batchv1.Job)
	return []string{strconv.FormatBool(job.Spec.Suspend != nil && *job.Spec.Suspend)}
}

func cronJobsOf(ctx context.Context, settings client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: settings.GetNamespace(), Name: settings.GetLabels()["cronjob"]}}}
}

type reconciler struct {
	client.Client
	events events.EventRecorder
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cron := &batchv1.CronJob{}
	if err := r.Get(ctx, req.NamespacedName, cron); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	waiting := &batchv1.JobList{}
	if err := r.List(ctx, waiting, client.InNamespace(cron.Namespace), client.MatchingFields{"suspended": "true"}); err != nil {
		return ctrl.Result{}, err
	}
	if len(waiting.Items) > 0 {
		return ctrl.Result{RequeueAfter: time.Minute}, nil
	}
	job := jobFor(cron)
	if err := ctrl.SetControllerReference(cron, job, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.Create(ctx, job); err != nil {
		return ctrl.Result{}, client.IgnoreAlreadyExists(err)
	}
	r.events.Eventf(cron, job, corev1.EventTypeNormal, "Started", "Create", "started Job %s", job.Name)
	old := cron.DeepCopy()
	cron.Status.LastScheduleTime = job.CreationTimestamp.DeepCopy()
	return ctrl.Result{}, r.Status().Patch(ctx, cron, client.MergeFrom(old))
}

func (r *reconciler) withFinalizer(ctx context.Context, cron *batchv1.CronJob) error {
	const name = "example.dev/backup"
	if cron.DeletionTimestamp.IsZero() {
		if controllerutil.AddFinalizer(cron, name) {
			return r.Update(ctx, cron)
		}
		return nil
	}
	if !controllerutil.ContainsFinalizer(cron, name) {
		return nil
	}
	if err := removeBackups(ctx, cron); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(cron, name)
	return r.Update(ctx, cron)
}

type admit struct{}

func (admit) Default(ctx context.Context, cron *batchv1.CronJob) error {
	if cron.Spec.ConcurrencyPolicy == "" {
		cron.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
	}
	return nil
}

func (admit) ValidateCreate(ctx context.Context, cron *batchv1.CronJob) (admission.Warnings, error) {
	return nil, validate(cron)
}

func (admit) ValidateUpdate(ctx context.Context, old, cron *batchv1.CronJob) (admission.Warnings, error) {
	return nil, validate(cron)
}

func (admit) ValidateDelete(ctx context.Context, cron *batchv1.CronJob) (admission.Warnings, error) {
	return nil, nil
}

func addWebhooks(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &batchv1.CronJob{}).WithDefaulter(admit{}).WithValidator(admit{}).Complete()
}

func newFakeClient(scheme *runtime.Scheme, cron *batchv1.CronJob) client.Client {
	return fake.NewClientBuilder().
		WithScheme(scheme).
		WithObjects(cron).
		WithStatusSubresource(cron).
		WithIndex(&batchv1.Job{}, "suspended", suspended).
		Build()
}

func startControlPlane() (stop func() error, err error) {
	env := &envtest.Environment{CRDDirectoryPaths: []string{"config/crd"}}
	cfg, err := env.Start()
	if err != nil {
		return nil, err
	}
	return env.Stop, useConfig(cfg)
}
