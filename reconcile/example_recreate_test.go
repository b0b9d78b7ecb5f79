// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

func setupWithJobs(mgr *manager.Manager) *reconcile.ChildSet {
	jobs := reconcile.Children(informer.For[*batchv1.Job](mgr.Informers()))
	sets := reconcile.Children(informer.For[*appsv1.StatefulSet](mgr.Informers()))
	return reconcile.NewChildSet(mgr.Client(), mgr.Scheme(), []reconcile.ChildKind{
		reconcile.Recreate(jobs, metav1.DeletePropagationBackground),
		reconcile.Recreate(sets, metav1.DeletePropagationOrphan), // their Pods stay
	}, reconcile.ChildSetOptions{FieldOwner: "website"})
}

// The children of a website whose immutable fields may change.
func ExampleRecreate() {
	var mgr *manager.Manager // of your program
	setupWithJobs(mgr)
}
