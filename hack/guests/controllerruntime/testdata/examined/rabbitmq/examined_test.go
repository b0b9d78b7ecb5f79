// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// A copy of RabbitMQ's cluster operator is tested with this file, which is in the package of its suite.
package controllers_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rabbitmqv1beta1 "github.com/rabbitmq/cluster-operator/v2/api/v1beta1"
	controllers "github.com/rabbitmq/cluster-operator/v2/internal/controller"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate/doctor"
)

const (
	crd    = "../../config/crd/bases/rabbitmq.com_rabbitmqclusters.yaml"
	short  = "short.yaml" // crd without most of its fields
	sample = "cluster.yaml"
)

func mqScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(s), rabbitmqv1beta1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// obeyed is a broker that does what it is told. asked is called with each command before; nil: it is not.
type obeyed struct {
	asked func(operator crclient.Reader, command string)
}

// asking is obeyed with what the operator reads.
type asking struct {
	obeyed
	operator crclient.Reader
}

func (a asking) Exec(_ *kubernetes.Clientset, _ *rest.Config, _, _, _ string, command ...string) (string, string, error) {
	if a.asked != nil {
		a.asked(a.operator, strings.Join(command, " "))
	}
	return "true", "", nil
}

// program returns the operator, as its main function sets it up.
func program(scheme *runtime.Scheme, broker obeyed) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{
			Scheme: scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: new(true)},
		})
		if err != nil {
			return err
		}
		clients, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			return err
		}
		err = (&controllers.RabbitmqClusterReconciler{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Scheme: scheme, Recorder: mgr.GetEventRecorderFor("mq"),
			Namespace: "rabbitmq-system", Clientset: clients, PodExecutor: asking{broker, mgr.GetClient()}, DefaultRabbitmqImage: "rabbitmq",
		}).SetupWithManager(mgr)
		if err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

func TestExamined_ByDoctor(t *testing.T) {
	r := doctor.Examine(t, doctor.Operator{Main: program(mqScheme(t), obeyed{}), CRDs: []string{short}, Samples: []string{sample}, Budget: 9 * time.Minute})
	neverLoaded, neverRemoved := false, false
	for _, f := range r.Findings {
		restart := strings.Contains(f.Text+strings.Join(f.Also, ""), "lastRestartAt is not there")
		neverLoaded = neverLoaded || f.Class == doctor.OtherEnd && restart && slices.Contains(f.Patterns, doctor.Intermediate)
		neverRemoved = neverRemoved || f.Class == doctor.NotUndone && strings.Contains(f.Text, "Service default/mq: metadata.annotations")
		t.Logf("%s [%s] %s\n%s\nby %v, %s, shown by %d plans, %d of %d repetitions\nalso %q\n%s\n", f.Class, f.ID, f.Text, f.Plan,
			f.Patterns, f.Line, f.Plans, f.Repeated, f.Tries, f.Also, strings.Join(f.Story, "\n"))
	}
	if !neverLoaded {
		t.Error("not found: a crash lets the configuration never be loaded")
	}
	if !neverRemoved {
		t.Error("not found: a removed annotation stays on the Service")
	}
	t.Logf("%d findings, %d of %d plans in %s (prepared in %s), %v, %d missed, %d refused; not judged: %q",
		len(r.Findings), r.Ran, r.Plans, r.Took, r.Prepared, r.Patterns, r.Missed, len(r.Refused), r.Skipped)
}

// transport is a RoundTripper that is a function.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// mq is a real control plane without controllers, on which the operator runs.
type mq struct {
	crclient.Client
	config *rest.Config
}

// run runs the operator. After a request that ends matches and has succeeded it is as good as dead: no other request
// reaches the server, and crashed is closed.
func (s mq) run(t *testing.T, ends func(*http.Request) bool, broker obeyed, wraps ...func(http.RoundTripper) http.RoundTripper) (crashed chan struct{}, stop func()) {
	t.Helper()
	crashed = make(chan struct{})
	crash := sync.OnceFunc(func() { close(crashed) })
	cfg := rest.CopyConfig(s.config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			select {
			case <-crashed:
				return nil, errors.New("the process is gone")
			default:
			}
			answer, err := next.RoundTrip(r)
			if err == nil && answer.StatusCode == http.StatusOK && ends(r) {
				crash()
			}
			return answer, err
		})
	})
	for _, wrap := range wraps {
		cfg.Wrap(wrap)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- program(s.Scheme(), broker)(ctx, cfg) }()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended // an error is as it should be if it has crashed
	})
	t.Cleanup(stop)
	return crashed, stop
}

func never(*http.Request) bool { return false }

// startMQ starts a control plane with the sample.
func startMQ(t *testing.T) (s mq, cluster *rabbitmqv1beta1.RabbitmqCluster) {
	t.Helper()
	env, err := envtest.Start(t.Context(), envtest.Options{CRDs: []string{crd}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.config = env.Config()
	if s.Client, err = crclient.New(s.config, crclient.Options{Scheme: mqScheme(t)}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	cluster = &rabbitmqv1beta1.RabbitmqCluster{}
	if err := yaml.Unmarshal(text, cluster); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	return s, cluster
}

func (s mq) get(t *testing.T, name string, into crclient.Object) {
	t.Helper()
	if err := crclient.IgnoreNotFound(s.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, into)); err != nil {
		t.Fatal(err)
	}
}

// awaitReconciled waits until the operator says that it has done everything for the present spec.
func (s mq) awaitReconciled(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(50 * time.Millisecond) {
		cluster := &rabbitmqv1beta1.RabbitmqCluster{}
		s.get(t, "mq", cluster)
		if cluster.Status.ObservedGeneration == cluster.Generation && cluster.Generation > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not reconciled after two minutes: %+v", cluster.Status)
		}
		s.rollOut(t)
	}
}

// rollOut reports the StatefulSet as rolled out, as its controller does when the Pods are ready.
func (s mq) rollOut(t *testing.T) {
	t.Helper()
	set := &appsv1.StatefulSet{}
	s.get(t, "mq-server", set)
	if set.Name == "" || set.Status.ObservedGeneration == set.Generation {
		return
	}
	set.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, Replicas: 1, ReadyReplicas: 1, CurrentReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1,
		CurrentRevision: "one", UpdateRevision: "one",
	}
	if err := s.Status().Update(t.Context(), set); err != nil {
		t.Log(err) // it has changed meanwhile
	}
}

// A new configuration is written into the ConfigMap, and the Pods are restarted by an annotation that is written into
// the ConfigMap afterwards. If the operator ends between these two writes, the next one finds the ConfigMap as it
// should be, writes no annotation, and reports success: the brokers never load the configuration.
func TestExamined_AConfigurationIsNeverLoaded(t *testing.T) {
	s, cluster := startMQ(t)
	crashed, stop := s.run(t, func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/configmaps/mq-server-conf")
	}, obeyed{})
	s.awaitReconciled(t)
	for {
		s.get(t, "mq", cluster)
		cluster.Spec.Rabbitmq.AdditionalConfig = "log.console.level = error"
		if err := s.Update(t.Context(), cluster); err == nil {
			break
		}
	}
	<-crashed
	stop()
	s.run(t, never, obeyed{})
	s.awaitReconciled(t)
	conf, set := &corev1.ConfigMap{}, &appsv1.StatefulSet{}
	s.get(t, "mq-server-conf", conf)
	s.get(t, "mq-server", set)
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
func TestExamined_ADeletedClusterComesBack(t *testing.T) {
	s, cluster := startMQ(t)
	var gate sync.RWMutex
	var deletions atomic.Int64
	key := types.NamespacedName{Namespace: "default", Name: "mq"}
	broker := obeyed{asked: func(operator crclient.Reader, command string) {
		switch {
		case !strings.Contains(command, "skipPreStopChecks"): // the question of a deletion
		case deletions.Add(1) == 1:
			gate.Lock() // the cache does not see that the finalizer is gone
		case deletions.Load() == 2:
			gate.Unlock()
			for operator.Get(t.Context(), key, &rabbitmqv1beta1.RabbitmqCluster{}) == nil && t.Context().Err() == nil {
				<-time.After(10 * time.Millisecond)
			}
		}
	}}
	s.run(t, never, broker, func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil && strings.HasSuffix(r.URL.Path, "/rabbitmqclusters") && r.URL.Query().Has("watch") {
				answer.Body = slow{answer.Body, &gate}
			}
			return answer, err
		})
	})
	s.awaitReconciled(t)
	s.get(t, "mq", cluster)
	if err := s.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	now := &rabbitmqv1beta1.RabbitmqCluster{}
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(20 * time.Millisecond) {
		now = &rabbitmqv1beta1.RabbitmqCluster{}
		s.get(t, "mq", now)
		if now.UID != "" && now.UID != cluster.UID {
			return // it is back
		}
		if time.Now().After(end) {
			t.Fatal("the cluster has not come back within two minutes")
		}
		if now.UID == "" { // any event of an object of the cluster
			service := &corev1.Service{}
			s.get(t, "mq", service)
			service.Labels = map[string]string{"touched": time.Now().Format("150405.000")}
			_ = s.Update(t.Context(), service) // it may have changed meanwhile
		}
	}
}
