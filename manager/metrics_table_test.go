// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"
)

// shapes returns the type and the labels of each metric, by name.
func shapes(t *testing.T, of prometheus.Gatherer) map[string]string {
	t.Helper()
	families, err := of.Gather()
	must(t, err)
	out := map[string]string{}
	for _, f := range families {
		words := []string{strings.ToLower(f.GetType().String())}
		for _, l := range f.GetMetric()[0].GetLabel() { // in alphabetical order
			words = append(words, l.GetName())
		}
		out[f.GetName()] = strings.Join(words, " ")
	}
	return out
}

// besideControllers returns the shapes of a manager with an election, webhooks with a
// certificate, and a request, and of one whose replicas share the work.
func besideControllers(t *testing.T) map[string]string {
	t.Helper()
	by, err := keypair.NewAuthority(time.Now(), "test")
	must(t, err)
	pair, err := by.Server(time.Now())
	must(t, err)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), pair.Cert, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "tls.key"), pair.Key, 0o600))
	m := newManager(t, manager.Options{
		LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "default"},
		Webhooks:       webhook.Options{Address: "127.0.0.1:0", DrainDelay: -1, CertDir: dir},
	})
	webhook.Validate(m.Webhooks(), "/pods", func(context.Context, *webhook.Request, *corev1.Pod, *corev1.Pod) error { return nil })
	stop, wait := run(t, m)
	<-m.Webhooks().Started()
	m.Webhooks().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/pods", nil))
	if err := m.Client().Get(t.Context(), kube.Key{Namespace: "default", Name: "web"}, &corev1.ConfigMap{}); err == nil {
		t.Error("a server that nobody runs has answered")
	}
	out := shapes(t, m.Metrics())
	stop()
	must(t, wait())
	shares := newManager(t, manager.Options{Sharding: &manager.Sharding{Shards: 8}, LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "default"}})
	for name, is := range shapes(t, shares.Metrics()) {
		if strings.Contains(name, "replica") || strings.Contains(name, "shards") {
			out[name] = is
		}
	}
	return out
}

// isTheTable compares docs/metrics.md with the exposed types and labels, by name.
func isTheTable(t *testing.T, exposed map[string]string) {
	t.Helper()
	text, err := os.ReadFile("../docs/metrics.md")
	must(t, err)
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+) \\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		labels := strings.Fields(strings.NewReplacer("`", "", ",", "").Replace(row[3]))
		slices.Sort(labels)
		documented[row[1]] = strings.Join(append([]string{row[2]}, labels...), " ")
	}
	for name, is := range exposed {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		if documented[name] != is {
			t.Errorf("docs/metrics.md says %q of %s, want %q", documented[name], name, is)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("docs/metrics.md has %s, which is not exposed", name)
	}
}

// states returns the samples of flyball_informer_scopes of two ConfigMap informers.
func states(one state.State) string {
	var lines []string
	for _, s := range state.All() {
		value := 0
		if s == one {
			value = 2
		}
		lines = append(lines, fmt.Sprintf("flyball_informer_scopes{kind=%q,state=%q} %d\n", "ConfigMap", string(s), value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
