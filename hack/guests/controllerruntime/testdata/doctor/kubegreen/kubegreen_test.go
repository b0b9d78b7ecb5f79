// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/simulate/doctor"

	kubegreen "github.com/kube-green/kube-green/api/v1alpha1"
	"github.com/kube-green/kube-green/internal/controller/sleepinfo"
	"github.com/kube-green/kube-green/internal/controller/sleepinfo/metrics"
)

const definitions = "../../config/crd/bases"

// clock is that of an operator; nil: the machine's.
type clock struct{ ahead time.Duration }

func (c clock) Now() time.Time { return time.Now().Add(c.ahead) }

// operator returns the program, with the options that its own main has by default but for how many seconds late it
// may be.
func operator(now sleepinfo.Clock, late int64) program {
	setup := func(_ context.Context, mgr ctrl.Manager) error {
		return (&sleepinfo.SleepInfoReconciler{
			Client: mgr.GetClient(), Log: logr.Discard(), Scheme: mgr.GetScheme(), Clock: now, Metrics: metrics.SetupMetricsOrDie("kube_green"),
			SleepDelta: late, ManagerName: "kube-green", MaxConcurrentReconciles: 20,
		}).SetupWithManager(mgr)
	}
	return managed(schemeOf(kubegreen.AddToScheme), setup, func(options *ctrl.Options) {
		options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}
	})
}

// The virtual time starts at midnight.
const samples = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
---
apiVersion: kube-green.com/v1alpha1
kind: SleepInfo
metadata: {name: night, namespace: default}
spec: {weekdays: "*", sleepAt: "0:01", wakeUpAt: "0:02", timeZone: Etc/UTC}
`

func TestDoctor(t *testing.T) {
	doctor.Test(t, doctor.Operator{Main: operator(nil, 5), CRDs: []string{definitions}, Samples: []string{file(t, samples)}})
}

// A process that ends between its write of a Deployment and that of the Secret, in which it remembers the
// number of replicas, loses the number: the Deployment stays asleep.
func TestBug_ADeploymentStaysAsleepAfterACrash(t *testing.T) {
	for name, crash := range map[string]bool{"without a crash": false, "with a crash": true} {
		t.Run(name, func(t *testing.T) {
			want := int32(3)
			if crash {
				want = 0 // the bug; 3 is right
			}
			if got := replicasAfterANight(t, crash); got != want {
				t.Errorf("the Deployment has %d replicas in the morning, and had %d before", got, want)
			}
		})
	}
}

func replicasAfterANight(t *testing.T, crash bool) int32 {
	w := realWorld(t, schemeOf(kubegreen.AddToScheme), definitions)
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	web.Spec.Replicas, web.Spec.Selector = new(int32(3)), &metav1.LabelSelector{MatchLabels: labels}
	web.Spec.Template.Labels, web.Spec.Template.Spec.Containers = labels, []corev1.Container{{Name: "web", Image: "web"}}
	night := &kubegreen.SleepInfo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "night"}}
	night.Spec = kubegreen.SleepInfoSpec{Weekdays: "*", SleepTime: "23:00", WakeUpTime: "7:00", TimeZone: "Etc/UTC"}
	for _, obj := range []client.Object{web, night} {
		must(t, w.Create(t.Context(), obj))
	}
	// at returns a clock that shows a time of the next day, or the day after it, in two seconds.
	at := func(days, hour int) clock {
		then := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, days).Add(time.Duration(hour) * time.Hour)
		return clock{time.Until(then) - 2*time.Second}
	}
	remembered := &corev1.Secret{}
	operation := func() string {
		w.get("sleepinfo-night", remembered)
		return string(remembered.Data["operation-type"])
	}
	evening := at(1, 23)
	p := w.start(operator(evening, 60), func(p *process, r *http.Request) error {
		if crash && strings.HasSuffix(r.URL.Path, "/deployments/web") {
			return p.kill()
		}
		return nil
	})
	if crash {
		<-p.ended
		p = w.start(operator(evening, 60), nil)
	}
	w.await("the Deployments are asleep", func() bool { return operation() == "SLEEP" })
	p.end()
	p = w.start(operator(at(2, 7), 60), nil)
	w.await("the Deployments have been woken up", func() bool { return operation() == "WAKE_UP" })
	p.end()
	w.get("web", web)
	return *web.Spec.Replicas
}
