// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/flyball-dev/flyball/manager"
)

func (r *reconciler) announce(site *corev1.ConfigMap) {
	r.events.Eventf(site, nil, corev1.EventTypeNormal, "Serving", "Reconcile", "%d pages are served", len(site.Data))
}

func newReconciler(mgr *manager.Manager) *reconciler {
	return &reconciler{events: mgr.Events("website")}
}

type reconciler struct {
	events events.EventRecorder
}

var _ = newReconciler // called by the program

// In a test the recorder is a fake one of client-go.
func ExampleManager_Events() {
	recorder := events.NewFakeRecorder(100)
	r := &reconciler{events: recorder} // a program calls newReconciler(mgr)
	r.announce(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"},
		Data:       map[string]string{"index.html": "It balances."},
	})
	fmt.Println(<-recorder.Events)
	// Output:
	// Normal Serving 1 pages are served
}
