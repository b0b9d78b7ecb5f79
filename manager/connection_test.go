// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
)

// warner is a server of ConfigMaps that warns about each request, and records the
// headers.
type warner struct{ last http.Header }

func (w *warner) RoundTrip(r *http.Request) (*http.Response, error) {
	w.last = r.Header
	body := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"prod","name":"web"}}`
	if r.URL.Path == "/api/v1" {
		body = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap"}]}`
	}
	header := http.Header{"Content-Type": {"application/json"}, "Warning": {`299 - "old"`}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func TestNew_ConnectionIsOneForAllClients(t *testing.T) {
	server := &warner{}
	var lines []string
	opts := manager.Options{
		Config: &rest.Config{Host: "http://api.test", Transport: server}, UserAgent: "website/1",
		MetricsAddress: "0", HealthAddress: "0",
		Logger: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}),
	}
	fs := flag.NewFlagSet("website", flag.ContinueOnError)
	opts.BindFlags(fs)
	must(t, fs.Parse([]string{"-as=system:serviceaccount:prod:website", "-as-group=a,b"}))
	m, err := manager.New(opts)
	must(t, err)

	must(t, m.Client().Get(t.Context(), kube.Key{Namespace: "prod", Name: "web"}, &corev1.ConfigMap{}))
	must(t, m.Client().With(client.InNamespace("prod")).Get(t.Context(), kube.Key{Name: "web"}, &corev1.ConfigMap{}))
	must(t, m.StandbyClient().Get(t.Context(), kube.Key{Namespace: "prod", Name: "web"}, &corev1.ConfigMap{}))
	own, err := kubernetes.NewForConfig(m.Config())
	must(t, err)
	_, err = own.CoreV1().ConfigMaps("prod").Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)

	if len(lines) != 1 || !strings.Contains(lines[0], "old") {
		t.Errorf("logged %q, want the one warning once for all clients", lines)
	}
	for name, want := range map[string]string{"User-Agent": "website/1", "Impersonate-User": "system:serviceaccount:prod:website", "Impersonate-Group": "a b"} {
		if got := strings.Join(server.last.Values(name), " "); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if m.Config().QPS >= 0 {
		t.Errorf("QPS is %v, want no limit on this side", m.Config().QPS)
	}
}
