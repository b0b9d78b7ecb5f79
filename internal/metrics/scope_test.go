// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
)

// manyScopes returns an informer with 5,000 namespaces, of which the first are stale,
// namespace 0 for the longest.
func manyScopes(stale int) state.Informer {
	s := state.Informer{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Synced: true}
	for n := range 5000 {
		x := state.Scope{
			Scope: listwatch.Scope{Namespace: fmt.Sprintf("tenant-%04d", n)}, State: state.Live,
			Since: time.Unix(int64(n), 0), LastContact: time.Unix(int64(1000+n), 0), Watches: 2, Relists: map[string]int{"expired": 1},
		}
		if n < stale {
			x.State = state.Stale
		}
		s.Scopes = append(s.Scopes, x)
	}
	return s
}

// gathered returns the series of one scrape: name and labels with their values.
func gathered(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

// The number of series does not grow with the number of scopes.
func TestMetrics_ManyScopesAreAggregated_A25(t *testing.T) {
	for _, c := range []struct{ stale, most, scopes int }{
		{0, 0, 0}, {7, 0, 7}, {5000, 0, 20}, {5000, 3, 3}, {7, -1, 5000},
	} {
		read := func() []state.Informer { return []state.Informer{manyScopes(c.stale)} }
		series := gathered(t, informerCollector{newInformerMetrics(), read, c.most})
		var scopes []string
		for name := range series {
			var scope, current string
			if n, _ := fmt.Sscanf(name, "flyball_informer_state ConfigMap in namespace %q %s", &scope, &current); n == 2 {
				scopes = append(scopes, scope)
			}
		}
		if len(scopes) != c.scopes {
			t.Errorf("%d of 5000 scopes stale, at most %d shown: %d have series, want %d", c.stale, c.most, len(scopes), c.scopes)
		}
		if slices.Sort(scopes); len(scopes) > 0 && (scopes[0] != "tenant-0000" || scopes[len(scopes)-1] != fmt.Sprintf("tenant-%04d", c.scopes-1)) {
			t.Errorf("series for %s to %s; want those that have been stale for the longest", scopes[0], scopes[len(scopes)-1])
		}
		if n := len(series) - len(scopes); n > 60 {
			t.Errorf("%d other series for one kind, want 60 at most", n)
		}
		for name, want := range map[string]float64{
			"flyball_informer_scopes ConfigMap Stale": float64(c.stale), "flyball_informer_scopes ConfigMap Live": float64(5000 - c.stale),
			"flyball_informer_watches_total ConfigMap": 10000, "flyball_informer_relists_total ConfigMap expired": 5000,
		} {
			if series[name] != want {
				t.Errorf("%s is %v, want %v", name, series[name], want)
			}
		}
		if age := time.Since(time.Unix(1000, 0)).Seconds(); series["flyball_informer_last_contact_seconds ConfigMap"] < age-60 {
			t.Errorf("last contact %v seconds ago, want that of the scope that has waited for the longest", series["flyball_informer_last_contact_seconds ConfigMap"])
		}
	}
}
