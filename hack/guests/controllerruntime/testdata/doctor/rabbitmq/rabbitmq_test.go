// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/doctor"

	rabbitmq "github.com/rabbitmq/cluster-operator/v2/api/v1beta1"
	controllers "github.com/rabbitmq/cluster-operator/v2/internal/controller"
)

const definition = "../../config/crd/bases/rabbitmq.com_rabbitmqclusters.yaml"

// broker does what it is told. asked is called with each command before; nil: it is not.
type broker struct {
	asked    func(operator client.Reader, command string)
	operator client.Reader
}

func (b broker) Exec(_ *kubernetes.Clientset, _ *rest.Config, _, _, _ string, command ...string) (string, string, error) {
	if b.asked != nil {
		b.asked(b.operator, strings.Join(command, " "))
	}
	return "true", "", nil
}

var scheme = schemeOf(rabbitmq.AddToScheme)

// operator returns the program. asked is that of its broker.
func operator(asked func(operator client.Reader, command string)) program {
	return managed(scheme, func(_ context.Context, mgr ctrl.Manager) error {
		clients, err := kubernetes.NewForConfig(mgr.GetConfig())
		if err != nil {
			return err
		}
		return (&controllers.RabbitmqClusterReconciler{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Scheme: scheme, Recorder: mgr.GetEventRecorderFor("mq"),
			Namespace: "rabbitmq-system", Clientset: clients, PodExecutor: broker{asked, mgr.GetClient()}, DefaultRabbitmqImage: "rabbitmq",
		}).SetupWithManager(mgr)
	})
}

const sample = `
apiVersion: rabbitmq.com/v1beta1
kind: RabbitmqCluster
metadata: {name: mq, namespace: default}
spec:
  image: rabbitmq
  service:
    annotations: {reached: from-inside}
  rabbitmq:
    additionalConfig: log.console.level = debug
`

func TestDoctor(t *testing.T) {
	short := ruled(t, definition, map[string]string{ // most fields only lengthen the search
		"spec.affinity": opaque, "spec.imagePullSecrets": opaque, "spec.override": opaque, "spec.secretBackend": opaque, "spec.tls": opaque, "spec.tolerations": opaque,
	})
	doctor.Test(t, doctor.Operator{Main: operator(nil), CRDs: []string{short}, Samples: []string{file(t, sample)}})
}

// startMQ starts a control plane with the sample.
func startMQ(t *testing.T) (w *world, cluster *rabbitmq.RabbitmqCluster) {
	t.Helper()
	w, cluster = realWorld(t, scheme, definition), &rabbitmq.RabbitmqCluster{}
	must(t, yaml.Unmarshal([]byte(sample), cluster))
	must(t, w.Create(t.Context(), cluster))
	return w, cluster
}

// awaitReconciled waits until the operator says that it has done everything for the present spec. It reports the
// StatefulSet as rolled out, as its controller does when the Pods are ready.
func (w *world) awaitReconciled() {
	w.t.Helper()
	w.await("the cluster is reconciled", func() bool {
		set := &appsv1.StatefulSet{}
		if w.get("mq-server", set) && set.Status.ObservedGeneration != set.Generation {
			set.Status = appsv1.StatefulSetStatus{
				ObservedGeneration: set.Generation, Replicas: 1, ReadyReplicas: 1, CurrentReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1,
				CurrentRevision: "one", UpdateRevision: "one",
			}
			if err := w.Status().Update(w.t.Context(), set); err != nil {
				w.t.Log(err) // it has changed meanwhile
			}
		}
		cluster := &rabbitmq.RabbitmqCluster{}
		return w.get("mq", cluster) && cluster.Status.ObservedGeneration == cluster.Generation
	})
}

// A new configuration is written into the ConfigMap, and the Pods are restarted by an annotation that is written into
// the ConfigMap afterwards. If the operator ends between these two writes, the next one finds the ConfigMap as it
// should be, writes no annotation, and reports success: the brokers never load the configuration.
func TestBug_AConfigurationIsNeverLoaded(t *testing.T) {
	w, cluster := startMQ(t)
	p := w.start(operator(nil), func(p *process, r *http.Request) error {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/configmaps/mq-server-conf") {
			return p.kill()
		}
		return nil
	})
	w.awaitReconciled()
	w.await("the configuration is changed", func() bool {
		w.get("mq", cluster)
		cluster.Spec.Rabbitmq.AdditionalConfig = "log.console.level = error"
		return w.Update(t.Context(), cluster) == nil
	})
	<-p.ended
	w.start(operator(nil), nil)
	w.awaitReconciled()
	conf, set := &corev1.ConfigMap{}, &appsv1.StatefulSet{}
	w.get("mq-server-conf", conf)
	w.get("mq-server", set)
	if !strings.Contains(conf.Data["userDefinedConfiguration.conf"], "error") {
		t.Errorf("the ConfigMap has not the new configuration: %q", conf.Data)
	}
	if restart, ok := set.Spec.Template.Annotations["rabbitmq.com/lastRestartAt"]; ok {
		t.Errorf("the Pods were restarted at %s: the mistake is mended", restart)
	}
}

// slow is a watch that delivers nothing while its gate is shut.
type slow struct {
	io.ReadCloser
	gate *sync.RWMutex
}

func (s slow) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.gate.RLock()
	defer s.gate.RUnlock()
	return n, err
}

// The finalizer is removed by a function that creates what it does not find. A reconcile that begins while the cache still
// shows the cluster that is being deleted, and ends when it does not any more, creates an empty cluster of the name, with
// all its objects. The wait for the Pods' label, of up to three seconds, lies in between.
func TestBug_ADeletedClusterComesBack(t *testing.T) {
	w, cluster := startMQ(t)
	var gate sync.RWMutex
	var deletions atomic.Int64
	key := types.NamespacedName{Namespace: "default", Name: "mq"}
	asked := func(operator client.Reader, command string) {
		switch {
		case !strings.Contains(command, "skipPreStopChecks"): // the question of a deletion
		case deletions.Add(1) == 1:
			gate.Lock() // the cache does not see that the finalizer is gone
		case deletions.Load() == 2:
			gate.Unlock()
			for operator.Get(t.Context(), key, &rabbitmq.RabbitmqCluster{}) == nil && t.Context().Err() == nil {
				<-time.After(10 * time.Millisecond)
			}
		}
	}
	w.start(operator(asked), nil, func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil && strings.HasSuffix(r.URL.Path, "/rabbitmqclusters") && r.URL.Query().Has("watch") {
				answer.Body = slow{answer.Body, &gate}
			}
			return answer, err
		})
	})
	w.awaitReconciled()
	w.get("mq", cluster)
	must(t, w.Delete(t.Context(), cluster))
	w.await("the cluster is back", func() bool {
		now := &rabbitmq.RabbitmqCluster{}
		if w.get("mq", now) {
			return now.UID != cluster.UID
		}
		service := &corev1.Service{} // any event of an object of the cluster
		w.get("mq", service)
		service.Labels = map[string]string{"touched": time.Now().Format("150405.000")}
		_ = w.Update(t.Context(), service) // it may have changed meanwhile
		return false
	})
}
