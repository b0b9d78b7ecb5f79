// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// wanted are Flyball's metrics; those of Go and the process are exposed too.
var wanted = []string{
	"controller_runtime_active_workers",
	"controller_runtime_max_concurrent_reconciles",
	"controller_runtime_reconcile_errors_total",
	"controller_runtime_reconcile_panics_total",
	"controller_runtime_reconcile_time_seconds",
	"controller_runtime_reconcile_timeouts_total",
	"controller_runtime_reconcile_total",
	"controller_runtime_terminal_reconcile_errors_total",
	"flyball_event_to_reconciled_seconds",
	"flyball_events_total",
	"flyball_informer_anomalies_total",
	"flyball_informer_audit_differences_total",
	"flyball_informer_audits_total",
	"flyball_informer_findings",
	"flyball_informer_handler_backlog",
	"flyball_informer_handler_backlog_bytes",
	"flyball_informer_handler_events_total",
	"flyball_informer_handler_longest_call_seconds",
	"flyball_informer_handler_merged_updates_total",
	"flyball_informer_handler_oldest_event_seconds",
	"flyball_informer_handler_panics_total",
	"flyball_informer_handler_running_seconds",
	"flyball_informer_index_panics_total",
	"flyball_informer_last_contact_seconds",
	"flyball_informer_mutations_total",
	"flyball_informer_object_bytes",
	"flyball_informer_object_heap_bytes",
	"flyball_informer_objects",
	"flyball_informer_own_writes_awaited",
	"flyball_informer_own_writes_not_overlaid_total",
	"flyball_informer_packed_bytes",
	"flyball_informer_relists_total",
	"flyball_informer_scopes",
	"flyball_informer_state",
	"flyball_informer_stream_fallbacks_total",
	"flyball_informer_synced",
	"flyball_informer_tombstones",
	"flyball_informer_tombstones_forgotten_total",
	"flyball_informer_undecodable_objects",
	"flyball_informer_unreadable_objects",
	"flyball_informer_waiting_deltas",
	"flyball_informer_watches_total",
	"flyball_reconcile_conflicts_total",
	"flyball_reconcile_findings",
	"flyball_reconcile_outcomes_total",
	"flyball_reconcile_overdue_total",
	"flyball_reconcile_paused",
	"flyball_reconcile_paused_keys",
	"flyball_reconcile_paused_waiting_keys",
	"flyball_source_events_total",
	"flyball_source_keys_total",
	"flyball_source_panics_total",
	"flyball_source_waiting_keys",
	"workqueue_adds_total",
	"workqueue_depth",
	"workqueue_longest_running_processor_seconds",
	"workqueue_queue_duration_seconds",
	"workqueue_retries_total",
	"workqueue_unfinished_work_seconds",
	"workqueue_work_duration_seconds",
}

func TestMetrics_ShowWhatControllersAndInformersHaveDone(t *testing.T) {
	beside := besideControllers(t)
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{MetricsScopes: -1})
		server := &configMaps{allowed: true, expired: 1}
		for _, name := range []string{"done", "later", "again", "broken", "hopeless", "panics", "slow"} {
			server.items = append(server.items, newConfigMap(name))
		}
		i := informer.New[*corev1.ConfigMap](server, configMapKind, informer.Options{PagedLists: true})
		must(t, m.AddTo(manager.StageInformers, i))
		// A second informer of the kind must not break the scrape.
		must(t, m.AddTo(manager.StageInformers, informer.New[*corev1.ConfigMap](server, configMapKind, informer.Options{PagedLists: true})))
		first := map[string]bool{}
		c := reconcile.New("copier", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			if first[key.Name] {
				return reconcile.Result{}, nil
			}
			first[key.Name] = true
			switch key.Name {
			case "later":
				return reconcile.After(time.Second, ""), nil
			case "again":
				return reconcile.Retry(""), nil
			case "broken":
				return reconcile.Result{}, errors.New("no")
			case "hopeless":
				return reconcile.Result{}, reconcile.Terminal(errors.New("never"))
			case "panics":
				panic("boom")
			case "slow":
				time.Sleep(3 * time.Second)
			}
			return reconcile.Result{}, nil
		}, reconcile.Options{Workers: 1, SoftDeadline: 2 * time.Second})
		c.Watch(source.Kind(i, source.Self))
		must(t, m.Add(c))
		stop, wait := run(t, m)
		time.Sleep(time.Minute)

		families, err := m.Metrics().Gather()
		must(t, err)
		var got []string
		for _, f := range families {
			if !strings.HasPrefix(f.GetName(), "go_") && !strings.HasPrefix(f.GetName(), "process_") {
				got = append(got, f.GetName())
			}
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("metrics\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
		}
		exposed := shapes(t, m.Metrics())
		maps.Copy(exposed, beside)
		isTheTable(t, exposed)
		for _, name := range []string{"go_goroutines", "process_start_time_seconds"} {
			if n, err := testutil.GatherAndCount(m.Metrics(), name); n != 1 {
				t.Errorf("%d of %s (%v), want 1", n, name, err)
			}
		}
		err = testutil.GatherAndCompare(m.Metrics(), strings.NewReader(`
# HELP controller_runtime_reconcile_total Reconciles that ended, by result.
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="copier",result="error"} 3
controller_runtime_reconcile_total{controller="copier",result="requeue"} 1
controller_runtime_reconcile_total{controller="copier",result="requeue_after"} 1
controller_runtime_reconcile_total{controller="copier",result="stopped"} 0
controller_runtime_reconcile_total{controller="copier",result="success"} 6
# HELP controller_runtime_reconcile_errors_total Reconciles that ended with an error, terminal ones, panics and timeouts among them.
# TYPE controller_runtime_reconcile_errors_total counter
controller_runtime_reconcile_errors_total{controller="copier"} 3
# HELP controller_runtime_terminal_reconcile_errors_total Reconciles that ended with a terminal error, which is not retried.
# TYPE controller_runtime_terminal_reconcile_errors_total counter
controller_runtime_terminal_reconcile_errors_total{controller="copier"} 1
# HELP controller_runtime_reconcile_panics_total Reconciles that panicked.
# TYPE controller_runtime_reconcile_panics_total counter
controller_runtime_reconcile_panics_total{controller="copier"} 1
# HELP controller_runtime_max_concurrent_reconciles Workers of the controller.
# TYPE controller_runtime_max_concurrent_reconciles gauge
controller_runtime_max_concurrent_reconciles{controller="copier"} 1
# HELP flyball_reconcile_outcomes_total Reconciles that ended, by outcome: each is counted under one.
# TYPE flyball_reconcile_outcomes_total counter
flyball_reconcile_outcomes_total{controller="copier",outcome="after"} 1
flyball_reconcile_outcomes_total{controller="copier",outcome="conflict"} 0
flyball_reconcile_outcomes_total{controller="copier",outcome="done"} 6
flyball_reconcile_outcomes_total{controller="copier",outcome="error"} 1
flyball_reconcile_outcomes_total{controller="copier",outcome="panic"} 1
flyball_reconcile_outcomes_total{controller="copier",outcome="retry"} 1
flyball_reconcile_outcomes_total{controller="copier",outcome="stopped"} 0
flyball_reconcile_outcomes_total{controller="copier",outcome="terminal"} 1
flyball_reconcile_outcomes_total{controller="copier",outcome="timeout"} 0
# HELP flyball_reconcile_findings Keys whose recorded reconciles show that something is wrong.
# TYPE flyball_reconcile_findings gauge
flyball_reconcile_findings{controller="copier",finding="fight"} 0
flyball_reconcile_findings{controller="copier",finding="hot loop"} 0
flyball_reconcile_findings{controller="copier",finding="starved"} 0
flyball_reconcile_findings{controller="copier",finding="stuck"} 0
flyball_reconcile_findings{controller="copier",finding="write without effect"} 0
# HELP flyball_reconcile_overdue_total Reconciles that passed the soft deadline.
# TYPE flyball_reconcile_overdue_total counter
flyball_reconcile_overdue_total{controller="copier"} 1
# HELP workqueue_depth Keys that wait for a worker, or for the end of the reconcile that holds them.
# TYPE workqueue_depth gauge
workqueue_depth{controller="copier",name="copier",priority="-100"} 0
workqueue_depth{controller="copier",name="copier",priority="0"} 0
# HELP workqueue_adds_total Times a key was added that was not waiting already.
# TYPE workqueue_adds_total counter
workqueue_adds_total{controller="copier",name="copier"} 11
# HELP flyball_informer_objects Objects that the informer holds.
# TYPE flyball_informer_objects gauge
flyball_informer_objects{kind="ConfigMap"} 14
# HELP flyball_informer_synced 1 if the first list of every scope is stored.
# TYPE flyball_informer_synced gauge
flyball_informer_synced{kind="ConfigMap"} 1
# HELP flyball_informer_scopes Scopes, each a list and watch of the kind, by state.
# TYPE flyball_informer_scopes gauge
`+states("Live")+``), "controller_runtime_reconcile_total", "controller_runtime_reconcile_errors_total",
			"controller_runtime_terminal_reconcile_errors_total", "controller_runtime_reconcile_panics_total",
			"controller_runtime_max_concurrent_reconciles", "flyball_reconcile_outcomes_total", "flyball_reconcile_overdue_total", "workqueue_depth",
			"workqueue_adds_total", "flyball_informer_objects", "flyball_informer_synced", "flyball_informer_scopes")
		if err != nil {
			t.Error(err)
		}
		for _, family := range families {
			if family.GetName() == "controller_runtime_reconcile_time_seconds" || family.GetName() == "workqueue_work_duration_seconds" {
				h := family.GetMetric()[0].GetHistogram()
				if h.GetSampleCount() != 11 || h.GetSampleSum() != 3 {
					t.Errorf("%s: %d samples, sum %v, want 11 and 3 seconds", family.GetName(), h.GetSampleCount(), h.GetSampleSum())
				}
				if n := len(h.GetBucket()); n < 12 {
					t.Errorf("%s: %d buckets, want at least those of the dashboards", family.GetName(), n)
				}
			}
		}
		for _, family := range families {
			// Seven keys were added at once to one worker, and one of them took three
			// seconds.
			if h := family.GetMetric()[0].GetHistogram(); family.GetName() == "flyball_event_to_reconciled_seconds" && h.GetSampleCount() != 7 {
				t.Errorf("%s: %d samples, want 7: the retries were asked for by nobody", family.GetName(), h.GetSampleCount())
			}
		}
		stop()
		must(t, wait())
	})
}

func TestMetrics_TwoManagersShareNothing(t *testing.T) {
	a, b := newManager(t, manager.Options{}), newManager(t, manager.Options{})
	for _, m := range []*manager.Manager{a, b} {
		must(t, m.Add(reconcile.New("same", func(context.Context, string) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{})))
		if n, err := testutil.GatherAndCount(m.Metrics(), "workqueue_depth"); n != 1 || err != nil {
			t.Errorf("%d series of workqueue_depth (%v), want 1: the other manager's are its own", n, err)
		}
	}
}

func TestMetrics_RefusedWritesAreCounted(t *testing.T) {
	m := newManager(t, manager.Options{
		Config:         &rest.Config{Host: "http://api.test", Transport: &warner{}},
		LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "default"},
	})
	if err := m.Client().Create(t.Context(), newConfigMap("web")); !errors.Is(err, manager.ErrNotLeading) {
		t.Errorf("a write before the election: %v, want ErrNotLeading", err)
	}
	must(t, m.Client().Get(t.Context(), kube.Key{Namespace: "prod", Name: "web"}, &corev1.ConfigMap{}))
	must(t, testutil.GatherAndCompare(m.Metrics(), strings.NewReader(`# HELP flyball_leader_refused_writes_total Writes of controllers that were refused or cancelled because the lease could not be trusted.
# TYPE flyball_leader_refused_writes_total counter
flyball_leader_refused_writes_total{name="website"} 1
`), "flyball_leader_refused_writes_total"))
}
