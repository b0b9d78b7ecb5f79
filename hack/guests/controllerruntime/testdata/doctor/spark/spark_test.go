// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocks "k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/flyball-dev/flyball/simulate/doctor"

	spark "github.com/kubeflow/spark-operator/v2/api/v1beta2"
	"github.com/kubeflow/spark-operator/v2/internal/controller/scheduledsparkapplication"
)

const definitions = "../../config/crd/bases"

// clock is that of an operator.
type clock struct {
	clocks.RealClock
	ahead time.Duration
}

func (c clock) Now() time.Time { return time.Now().Add(c.ahead) }

// operator returns the program: its controller of ScheduledSparkApplications.
func operator(ahead time.Duration) program {
	return managed(schemeOf(spark.AddToScheme), func(_ context.Context, mgr ctrl.Manager) error {
		options := scheduledsparkapplication.Options{TimestampPrecision: "nanos"}
		return scheduledsparkapplication.NewReconciler(
			mgr.GetScheme(), mgr.GetClient(), mgr.GetEventRecorderFor("spark"), clock{ahead: ahead}, options,
		).SetupWithManager(mgr, controller.Options{})
	})
}

// The virtual time starts at midnight.
const samples = `
apiVersion: sparkoperator.k8s.io/v1beta2
kind: ScheduledSparkApplication
metadata: {name: pi, namespace: default}
spec:
  schedule: "1 0 * * *"
  timeZone: Etc/UTC
  concurrencyPolicy: Allow
  template:
    type: Scala
    mode: cluster
    image: spark
    mainClass: Pi
    mainApplicationFile: local:///pi.jar
    sparkVersion: 4.0.1
    driver: {cores: 1}
    executor: {instances: 1}
`

func TestDoctor(t *testing.T) {
	// What has run does not follow the fields of a later time.
	doctor.Test(t, doctor.Operator{Main: operator(0), CRDs: []string{ruled(t, definitions, map[string]string{whole: opaque})}, Samples: []string{file(t, samples)}})
}

// The operator creates the SparkApplication of a tick under a name with the present time, and then writes the
// time of the next tick. If that write is refused, such as because the user has changed a label, the next
// reconcile creates another SparkApplication for the same tick.
func TestBug_ATickRunsTwiceAfterAConflict(t *testing.T) {
	for name, conflict := range map[string]bool{"without a conflict": false, "with a conflict": true} {
		t.Run(name, func(t *testing.T) {
			// The bug: with a conflict there are more than one.
			if got := runsOfATick(t, conflict); len(got) == 0 || len(got) > 1 != conflict {
				t.Errorf("there are %d SparkApplications for one tick: %v", len(got), got)
			}
		})
	}
}

func runsOfATick(t *testing.T, conflict bool) (runs []string) {
	w := realWorld(t, schemeOf(spark.AddToScheme), definitions)
	pi := &spark.ScheduledSparkApplication{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pi"}}
	pi.Spec = spark.ScheduledSparkApplicationSpec{Schedule: "0 5 * * *", TimeZone: "Etc/UTC", ConcurrencyPolicy: spark.ConcurrencyAllow}
	pi.Spec.Template.Type, pi.Spec.Template.SparkVersion = spark.SparkApplicationTypeScala, "4.0.1"
	pi.Spec.Template.Mode, pi.Spec.Template.MainApplicationFile = spark.DeployModeCluster, new("local:///pi.jar")
	must(t, w.Create(t.Context(), pi))
	five := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1).Add(5 * time.Hour)
	var once sync.Once
	w.start(operator(time.Until(five)-3*time.Second), func(_ *process, r *http.Request) error {
		if !conflict || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/sparkapplications") {
			return nil
		}
		once.Do(func() {
			label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"labels": {"team": "a"}}}`))
			if err := w.Patch(t.Context(), pi.DeepCopy(), label); err != nil {
				t.Error(err)
			}
		})
		return nil
	})
	w.await("the tick is over", func() bool {
		return w.get("pi", pi) && !pi.Status.LastRun.IsZero() && pi.Status.NextRun.After(five)
	})
	all := &spark.SparkApplicationList{}
	must(t, w.List(t.Context(), all))
	for _, one := range all.Items {
		runs = append(runs, one.Name)
	}
	return runs
}
