// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
)

// recoverWithin bounds one recovery.
const recoverWithin = 2 * time.Minute

// awayFor is how long the server stays down in the Away faults, in addition to the time
// that it takes to start.
const awayFor = 5 * time.Second

// BenchmarkRecovery measures how long informers of three kinds take until their caches
// equal the server again: after a kill -9 of the API server, which restarts at once or five
// seconds later, and after a compaction of the events that they would have received next,
// with the network down. With -benchtime 6x the same informers go through six faults in a
// row. All contestants go through the same fault, so all figures include the time that the
// server takes to become ready. That time is reported too, with the number of requests that
// each contestant sent.
func BenchmarkRecovery(b *testing.B) {
	klog.SetLogger(logr.Discard()) // client-go's log of the outage
	env, err := envtest.Start(b.Context(), envtest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { env.Stop() })
	r := &recovery{env: env, api: kubernetes.NewForConfigOrDie(env.Config())}
	for n := range 300 {
		if err := r.write(b.Context(), fmt.Sprintf("there-%d", n)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("Kill", func(b *testing.B) { r.measure(b, func(b *testing.B) (time.Time, time.Time) { return r.kill(b, 0) }) })
	b.Run("Away", func(b *testing.B) {
		r.measure(b, func(b *testing.B) (time.Time, time.Time) { return r.kill(b, awayFor) })
	})
	b.Run("Compaction", func(b *testing.B) { r.measure(b, r.compact) })
}

// recovery is one server and its writer.
type recovery struct {
	env   *envtest.Environment
	api   kubernetes.Interface
	tried []*survivor
	step  int
}

// survivor is a contestant: its informers and their configuration.
type survivor struct {
	name     string
	network  envtest.Network
	requests atomic.Int64
	held     func() map[string]string // what its caches hold: kind/name → version
	took     []time.Duration          // until they equalled the server, the first time at the start
	sent     []int64                  // requests, each time
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// config returns a configuration for the server that counts requests.
func (s *survivor) config(env *envtest.Environment) *rest.Config {
	cfg := env.Config()
	cfg.Dial = s.network.Dial
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			s.requests.Add(1)
			return next.RoundTrip(r)
		})
	})
	return cfg
}

func (r *recovery) measure(b *testing.B, fault func(*testing.B) (time.Time, time.Time)) {
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	ours, theirs := &survivor{name: "flyball"}, &survivor{name: "client-go"}
	r.tried = []*survivor{ours, theirs}
	flyballInformers(b, ctx, &running, r.env, ours)
	clientgoInformers(b, ctx, &running, r.env, theirs)
	r.wait(b, time.Now(), r.tried)
	var server []time.Duration
	for b.Loop() {
		for _, s := range r.tried {
			s.requests.Store(0)
		}
		begun, ready := fault(b)
		server = append(server, ready.Sub(begun))
		r.wait(b, begun, r.tried)
	}
	n := float64(b.N)
	b.ReportMetric(total(server).Seconds()/n, "server-s")
	for _, s := range r.tried {
		took, sent := s.took[1:], total(s.sent[1:])
		after := make([]time.Duration, len(took)) // the server was ready
		for i := range took {
			after[i] = took[i] - server[i]
		}
		b.Logf("%s, after the server, one fault after the other: %v", s.name, after)
		b.ReportMetric(total(took).Seconds()/n, s.name+"-s")
		b.ReportMetric(slices.Max(after).Seconds(), s.name+"-worst-after-s")
		b.ReportMetric(float64(sent)/n, s.name+"-requests")
	}
	b.ReportMetric(0, "ns/op")
}

func total[N time.Duration | int64](all []N) (sum N) {
	for _, n := range all {
		sum += n
	}
	return sum
}

// kill kills the API server and restarts it after away. It returns the time of the kill and
// the time at which the server was ready.
func (r *recovery) kill(b *testing.B, away time.Duration) (begun, ready time.Time) {
	begun = time.Now()
	err := r.env.KillAPIServer()
	<-time.After(away)
	if err := errors.Join(err, r.env.StartAPIServer(b.Context())); err != nil {
		b.Fatal(err)
	}
	ready = time.Now()
	r.step++
	if err := r.write(b.Context(), fmt.Sprintf("step-%d", r.step)); err != nil {
		b.Fatal(err)
	}
	return begun, ready
}

// compact changes objects while the informers are disconnected and makes the server drop
// the history. Then it connects them again.
func (r *recovery) compact(b *testing.B) (begun, ready time.Time) {
	for _, s := range r.tried {
		s.network.Shut()
	}
	r.step++
	err := r.write(b.Context(), fmt.Sprintf("step-%d", r.step))
	err = errors.Join(err, r.env.KillAPIServer())
	begun = time.Now()
	if err := errors.Join(err, r.env.Compact(b.Context()), r.env.StartAPIServer(b.Context())); err != nil {
		b.Fatal(err)
	}
	for _, s := range r.tried {
		s.network.Open()
	}
	return begun, time.Now()
}

// wait records for each contestant when its caches equal the server.
func (r *recovery) wait(b *testing.B, begun time.Time, waiting []*survivor) {
	b.Helper()
	want, err := r.live(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for len(waiting) > 0 {
		waiting = slices.DeleteFunc(slices.Clone(waiting), func(s *survivor) bool {
			equal := maps.Equal(s.held(), want)
			if equal {
				s.took, s.sent = append(s.took, time.Since(begun)), append(s.sent, s.requests.Load())
			}
			return equal
		})
		if len(waiting) == 0 {
			break
		}
		if <-tick.C; time.Since(begun) > recoverWithin {
			b.Fatalf("%s: has %d objects, the server %d, %v after the fault", waiting[0].name, len(waiting[0].held()), len(want), recoverWithin)
		}
	}
}

// write creates an object of each kind.
func (r *recovery) write(ctx context.Context, name string) error {
	meta := metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "web"}}
	_, err := r.api.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	_, err2 := r.api.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{})
	_, err3 := r.api.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		},
	}}, metav1.CreateOptions{})
	return errors.Join(err, err2, err3)
}

// live returns the result of a fresh list of the three kinds.
func (r *recovery) live(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	configMaps, err := r.api.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range configMaps.Items {
		note(out, "ConfigMap", &configMaps.Items[i])
	}
	secrets, err := r.api.CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range secrets.Items {
		note(out, "Secret", &secrets.Items[i])
	}
	deployments, err := r.api.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range deployments.Items {
		note(out, "Deployment", &deployments.Items[i])
	}
	return out, nil
}

func note(into map[string]string, kind string, obj metav1.Object) {
	into[kind+" "+obj.GetNamespace()+"/"+obj.GetName()] = obj.GetResourceVersion()
}

func flyballInformers(b *testing.B, ctx context.Context, running *sync.WaitGroup, env *envtest.Environment, s *survivor) {
	f, err := informer.NewSharedInformerFactory(s.config(env), clientscheme.Scheme, informer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	configMaps := informer.For[*corev1.ConfigMap](f).Lister()
	secrets := informer.For[*corev1.Secret](f).Lister()
	deployments := informer.For[*appsv1.Deployment](f).Lister()
	s.held = func() map[string]string {
		out := map[string]string{}
		for o := range configMaps.All() {
			note(out, "ConfigMap", o)
		}
		for o := range secrets.All() {
			note(out, "Secret", o)
		}
		for o := range deployments.All() {
			note(out, "Deployment", o)
		}
		return out
	}
	running.Go(func() {
		if err := f.Run(ctx); err != nil {
			b.Error(err)
		}
	})
}

func clientgoInformers(b *testing.B, ctx context.Context, running *sync.WaitGroup, env *envtest.Environment, s *survivor) {
	client, err := kubernetes.NewForConfig(s.config(env))
	if err != nil {
		b.Fatal(err)
	}
	f := informers.NewSharedInformerFactory(client, 0)
	stores := map[string]cache.Store{
		"ConfigMap":  f.Core().V1().ConfigMaps().Informer().GetStore(),
		"Secret":     f.Core().V1().Secrets().Informer().GetStore(),
		"Deployment": f.Apps().V1().Deployments().Informer().GetStore(),
	}
	s.held = func() map[string]string {
		out := map[string]string{}
		for kind, store := range stores {
			for _, o := range store.List() {
				note(out, kind, o.(metav1.Object))
			}
		}
		return out
	}
	running.Go(func() {
		f.StartWithContext(ctx)
		<-ctx.Done()
		f.Shutdown()
	})
}
