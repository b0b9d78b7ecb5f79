// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/webhook"
)

// A kind that this process converts cannot be listed before the process is ready.
func TestManager_ReadyDoesNotWaitForWhatItConverts_M4(t *testing.T) {
	m := newManager(t, manager.Options{
		Scheme: clientgoscheme.Scheme, // with beta versions
		Config: &rest.Config{Host: "http://127.0.0.1:1"}, Informers: informer.Options{PagedLists: true},
		Webhooks: webhook.Options{Address: "127.0.0.1:0", CertDir: t.TempDir(), DrainDelay: -1},
	})
	webhook.Convert(m.Webhooks(), webhook.Spoke(
		func(*appsv1beta1.Deployment, *appsv1.Deployment) error { return nil },
		func(*appsv1.Deployment, *appsv1beta1.Deployment) error { return nil }))
	add := func(name string, s source.Source[reconcile.Key]) {
		c := reconcile.New(name, func(context.Context, reconcile.Key) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}, reconcile.Options{})
		c.Watch(s)
		must(t, m.Add(c))
	}
	deployments := informer.For[*appsv1.Deployment](m.Informers())
	maps := informer.For[*corev1.ConfigMap](m.Informers())
	add("deployer", source.Kind(deployments, source.Self))
	add("copier", source.Kind(maps, source.Self))
	stop, wait := run(t, m)
	<-m.Webhooks().Started()
	code, text := probe(m, "/readyz?verbose")
	for _, want := range []string{
		"[+]informer/Deployment.apps does not count: this process converts what it waits for: not synced",
		"[+]controller/deployer does not count: this process converts what it waits for: not synced",
		"[-]informer/ConfigMap failed: not synced", "[-]controller/copier failed: not synced",
		"[-]webhooks failed: there is no certificate",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/readyz = %d, lacks %q:\n%s", code, want, text)
		}
	}
	if code, text := probe(m, "/readyz?exclude=informer/ConfigMap&exclude=controller/copier&exclude=webhooks"); code != http.StatusOK {
		t.Errorf("/readyz = %d, want 200: it would wait for itself\n%s", code, text)
	}
	stop()
	must(t, wait())
}

// refusing is an API server that stores a Secret and refuses everything else. It
// signals requests for a configuration.
type refusing struct {
	asked  chan struct{}
	secret []byte
}

func (f *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	code, reason := http.StatusForbidden, metav1.StatusReasonForbidden
	switch {
	case !strings.Contains(r.URL.Path, "/secrets"):
		select {
		case f.asked <- struct{}{}:
		default:
		}
	case r.Method == http.MethodPost:
		var err error
		if f.secret, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		code = http.StatusCreated
	case f.secret == nil:
		code, reason = http.StatusNotFound, metav1.StatusReasonNotFound
	default:
		code = http.StatusOK
	}
	if code < http.StatusBadRequest {
		return answer(r, code, json.RawMessage(f.secret)), nil
	}
	return answer(r, code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason}), nil
}

// A target that cannot be written is reported, but does not delay readiness.
func TestManager_ReadyNamesTargetsWithoutCABundle_M4(t *testing.T) {
	server := &refusing{asked: make(chan struct{}, 1)}
	m := newManager(t, manager.Options{Config: &rest.Config{Host: "http://server", QPS: -1, Transport: server}, Webhooks: webhook.Options{
		Address: "127.0.0.1:0", DrainDelay: -1, Managed: &webhook.Managed{Namespace: "default", Service: "hooks", Validating: []string{"rules"}},
	}})
	webhook.Validate(m.Webhooks(), "", func(context.Context, *webhook.Request, *corev1.Pod, *corev1.Pod) error { return nil })
	stop, wait := run(t, m)
	<-server.asked
	<-server.asked // again: the first round is over
	code, text := probe(m, "/readyz?verbose")
	for _, want := range []string{"[+]webhooks ok\n", "[+]webhooks/ca-bundles does not count: the others are served: ValidatingWebhookConfiguration rules: "} {
		if code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("/readyz = %d, lacks %q:\n%s", code, want, text)
		}
	}
	stop()
	must(t, wait())
}

func TestManager_WebhooksAreMadeOnce(t *testing.T) {
	m := newManager(t, manager.Options{})
	if code, text := probe(m, "/readyz/webhooks"); code != http.StatusNotFound {
		t.Errorf("/readyz/webhooks = %d %s: nobody has asked for webhooks", code, text)
	}
	if first, second := m.Webhooks(), m.Webhooks(); first != second {
		t.Error("Webhooks has made two servers")
	}
}

func TestManager_WebhooksMisusedEndTheRun(t *testing.T) {
	for want, misuse := range map[string]func() *manager.Manager{
		"Managed: no Namespace is set": func() *manager.Manager {
			m := newManager(t, manager.Options{Webhooks: webhook.Options{Managed: &webhook.Managed{Service: "hooks"}}})
			m.Webhooks()
			return m
		},
		"the function is nil": func() *manager.Manager {
			m := newManager(t, manager.Options{})
			webhook.Validate[*corev1.Pod](m.Webhooks(), "", nil)
			return m
		},
	} {
		if err := misuse().Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run = %v, want %q", err, want)
		}
	}
	m := newManager(t, manager.Options{GracePeriod: 10 * time.Second})
	m.Webhooks()
	if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Webhooks.DrainDelay is 10s and GracePeriod 10s") {
		t.Errorf("Run = %v, want the delay that leaves no time, though it was not given", err)
	}
	opts := manager.Options{GracePeriod: 5 * time.Second, Webhooks: webhook.Options{DrainDelay: 5 * time.Second}}
	if err := opts.Complete(); err == nil || !strings.Contains(err.Error(), "Webhooks.DrainDelay is 5s and GracePeriod 5s") {
		t.Errorf("Complete = %v, want the delay that leaves no time", err)
	}
}

// The drain delay counts from the start of the stop, not from the end of the stages
// before the webhooks.
func TestManager_WebhooksDrainFromTheBeginningOfTheStop_M2(t *testing.T) {
	m := newManager(t, manager.Options{Webhooks: webhook.Options{Address: "127.0.0.1:0", DrainDelay: -1, CertDir: t.TempDir()}})
	hooks := m.Webhooks()
	began := make(chan struct{})
	must(t, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		if hooks.Snapshot().Stopping.IsZero() {
			t.Error("controllers are told to end, and the webhooks do not know that a stop has begun")
		}
		return nil
	})))
	stop, wait := run(t, m)
	<-began
	if !hooks.Snapshot().Stopping.IsZero() {
		t.Error("a stop has begun by itself")
	}
	stop()
	must(t, wait())
}

func TestManager_WebhooksAreMeasured(t *testing.T) {
	m := newManager(t, manager.Options{Webhooks: webhook.Options{CertDir: t.TempDir()}})
	if families, err := m.Metrics().Gather(); err != nil || strings.Contains(fmt.Sprint(families), "webhook") {
		t.Errorf("metrics of webhooks without any, or %v", err)
	}
	webhook.Validate(m.Webhooks(), "/pods", func(context.Context, *webhook.Request, *corev1.Pod, *corev1.Pod) error { return nil })
	m.Webhooks().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/pods", nil))
	families, err := m.Metrics().Gather()
	must(t, err)
	docs, err := os.ReadFile("../docs/metrics.md")
	must(t, err)
	found := map[string]string{}
	for _, f := range families {
		if strings.Contains(f.GetName(), "webhook") {
			found[f.GetName()] = fmt.Sprint(f.GetMetric())
			if row := fmt.Sprintf("| `%s` | %s |", f.GetName(), strings.ToLower(f.GetType().String())); !strings.Contains(string(docs), row) {
				t.Errorf("docs/metrics.md lacks %q", row)
			}
		}
	}
	if codes := m.Webhooks().Snapshot().Webhooks[0].Codes; !maps.Equal(codes, map[int]int64{200: 0, 405: 1, 500: 0}) {
		t.Errorf("answers by status: %v", codes)
	}
	for name, want := range map[string]string{
		"controller_runtime_webhook_requests_in_flight": "value:0",
		"controller_runtime_webhook_latency_seconds":    "sample_count:1",
		"controller_runtime_webhook_requests_total":     `label:{name:"code"value:"405"}label:{name:"webhook"value:"/pods"}counter:{value:1}`,
		"flyball_webhook_requests_total":                `value:"failed"`,
		"flyball_webhook_panics_total":                  `value:"/pods"`,
	} {
		if !strings.Contains(strings.ReplaceAll(found[name], " ", ""), want) {
			t.Errorf("%s = %s, want %s in it", name, found[name], want)
		}
	}
}
