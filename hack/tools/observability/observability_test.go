// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

// dashboard is the part of Grafana's JSON that the tests read.
type dashboard struct {
	UID        string
	Title      string
	Panels     []panel
	Templating struct {
		List []struct {
			Name  string
			Type  string
			Query any
		}
	}
}

type panel struct {
	ID          int
	Title, Type string
	Description string
	Datasource  struct{ UID string }
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		Expr, LegendFormat string
	}
}

// notShown are our metrics that the dashboard omits, each with the reason.
var notShown = map[string]string{
	"flyball_informer_audits_total":                  "audits are asked for; what they find is an alert",
	"flyball_informer_findings":                      "the log and the console name them",
	"flyball_informer_handler_backlog_bytes":         "the oldest event says it sooner; the log says when it is past its bound",
	"flyball_informer_handler_events_total":          "the sources' events are shown",
	"flyball_informer_handler_merged_updates_total":  "only handlers of every event that fall far behind, and the log says it",
	"flyball_informer_handler_panics_total":          "an alert, and in the log with the stack",
	"flyball_informer_handler_running_seconds":       "the oldest event says it sooner",
	"flyball_informer_index_panics_total":            "an alert, and in the log with the stack",
	"flyball_informer_own_writes_awaited":            "for looking into one process",
	"flyball_informer_own_writes_not_overlaid_total": "for looking into one server",
	"flyball_informer_state":                         "only of scopes in trouble, for which it is an alert",
	"flyball_informer_stream_fallbacks_total":        "for looking into one server",
	"flyball_reconcile_findings":                     "the log and the console name the keys",
	"flyball_reconcile_paused":                       "an alert after an hour",
	"flyball_reconcile_paused_keys":                  "an alert after an hour",
	"flyball_reconcile_paused_waiting_keys":          "the console names the keys",
	"flyball_informer_synced":                        "the states are shown, and it is an alert",
	"flyball_informer_tombstones":                    "for looking into one process",
	"flyball_informer_tombstones_forgotten_total":    "for looking into one process",
	"flyball_informer_watches_total":                 "the relists are what costs",
	"flyball_reconcile_conflicts_total":              "among the outcomes",
	"flyball_replica_lease_requests_total":           "for looking into one process",
	"flyball_replica_refused_writes_total":           "the log says it; nothing was written",
	"flyball_replica_shards":                         "only of programs whose replicas share objects; the console shows them",
	"flyball_replica_waiting":                        "an alert",
	"flyball_replicas":                               "only of programs whose replicas share objects; the console shows them",
	"flyball_unheld_shards":                          "an alert",
	"flyball_source_panics_total":                    "an alert, and in the log with the stack",
	"flyball_webhook_panics_total":                   "an alert, and in the log with the stack",
}

// silent are metrics of the dashboard for which a healthy cluster need not have series, each
// with the condition for one.
var silent = map[string]string{
	"flyball_informer_relists_total": "from the first list that follows another one",
}

func read[T any](t *testing.T, file string, unmarshal func([]byte, any) error) T {
	t.Helper()
	var out T
	text, err := os.ReadFile(file)
	if err == nil {
		err = unmarshal(text, &out)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return out
}

func TestDashboard_ShowsWhatIsExposed(t *testing.T) {
	e, d := exposed(t), read[dashboard](t, "dashboard.json", json.Unmarshal)
	variable := regexp.MustCompile(`\$\{?(\w+)`)
	known := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		known = append(known, v.Name)
		if query, ok := v.Query.(string); ok && v.Type == "query" {
			found := regexp.MustCompile(`^label_values\((.*), *(\w+)\)$`).FindStringSubmatch(query)
			if found == nil {
				t.Errorf("variable %s: %q is no label_values", v.Name, query)
				continue
			}
			if _, labels := judge(t, "variable "+v.Name, found[1], e); !slices.Contains(labels, found[2]) {
				t.Errorf("variable %s: %q: the metric has no label %s", v.Name, query, found[2])
			}
		}
	}
	for _, want := range []string{"datasource", "namespace", "controller"} {
		if !slices.Contains(known, want) {
			t.Errorf("there is no variable %s", want)
		}
	}
	if d.UID == "" || d.Title == "" {
		t.Error("the dashboard has no uid or title, so that it cannot be provisioned")
	}
	shown := map[string]bool{}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("panel %q: its id %d is taken, or none", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 || p.GridPos.H == 0 {
			t.Errorf("panel %q: it does not fit into the grid", p.Title)
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "$datasource" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q: it has no description, no target, or a data source of its own", p.Title)
		}
		for _, target := range p.Targets {
			where := "panel " + p.Title
			for _, v := range variable.FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(known, v[1]) {
					t.Errorf("%s: %q: there is no variable %s", where, target.Expr, v[1])
				}
			}
			metrics, labels := judge(t, where, target.Expr, e)
			for _, m := range metrics {
				shown[m] = true
				if !e.families[m].sample && silent[m] == "" {
					t.Errorf("%s: a manager with the default options has no series of %s: show what it has, or say in silent why not", where, m)
				}
			}
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !slices.Contains(labels, l[1]) {
					t.Errorf("%s: the legend names the label %s, which %q does not have", where, l[1], target.Expr)
				}
			}
		}
	}
	for name := range e.families {
		if strings.HasPrefix(name, "flyball_") && shown[name] == (notShown[name] != "") {
			t.Errorf("%s: shown %v, and left out because %q: put it on the dashboard or say in notShown why not", name, shown[name], notShown[name])
		}
	}
	for name := range silent {
		if e.families[name] == nil || !shown[name] {
			t.Errorf("%s is excused for having no series, but no manager exposes it, or no panel shows it", name)
		}
	}
	for name := range notShown {
		if e.families[name] == nil {
			t.Errorf("%s is left out of the dashboard, but no manager exposes it", name)
		}
	}
}

// rules is a file of Prometheus alerting rules.
type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			KeepFiringFor       string `yaml:"keep_firing_for"`
			Labels, Annotations map[string]string
		}
	}
}

func TestAlerts_AskForWhatIsExposed(t *testing.T) {
	e := exposed(t)
	file := read[rules](t, "alerts.yaml", func(text []byte, out any) error {
		decoder := yaml.NewDecoder(strings.NewReader(string(text)))
		decoder.KnownFields(true)
		return decoder.Decode(out)
	})
	runbook, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			_, labels := judge(t, r.Alert, r.Expr, e)
			if names[r.Alert] {
				t.Errorf("%s: there are two", r.Alert)
			}
			names[r.Alert] = true
			for _, text := range []string{r.For, r.KeepFiringFor} {
				if d, err := model.ParseDuration(text); text != "" && err != nil || time.Duration(d) < 0 {
					t.Errorf("%s: %q is no duration", r.Alert, text)
				}
			}
			if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
				t.Errorf("%s: its severity is %q", r.Alert, r.Labels["severity"])
			}
			for _, note := range []string{"summary", "description"} {
				if r.Annotations[note] == "" {
					t.Errorf("%s: it has no %s", r.Alert, note)
				}
			}
			for _, l := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(r.Annotations["summary"]+r.Annotations["description"], -1) {
				if !slices.Contains(labels, l[1]) {
					t.Errorf("%s: its text names the label %s, which %q does not have", r.Alert, l[1], r.Expr)
				}
			}
			if !strings.HasSuffix(r.Annotations["runbook_url"], "docs/operations.md#"+strings.ToLower(r.Alert)) || !strings.Contains(string(runbook), "\n### "+r.Alert+"\n") {
				t.Errorf("%s: docs/operations.md has no section of that name, or runbook_url does not lead there", r.Alert)
			}
		}
	}
	for _, section := range regexp.MustCompile(`(?m)^### (Flyball\w+)$`).FindAllStringSubmatch(string(runbook), -1) {
		if !names[section[1]] {
			t.Errorf("docs/operations.md has a section about %s, which is no alert", section[1])
		}
	}
}

// The SDK understands what the core sends through OpenTelemetry's API.
func TestTraces_ReachTheSDK(t *testing.T) {
	parents := map[string]string{}
	named := map[string]string{}
	for _, s := range exposed(t).spans {
		named[s.SpanContext.SpanID().String()] = s.Name
	}
	for _, s := range exposed(t).spans {
		if s.EndTime.Before(s.StartTime) {
			t.Errorf("%s ends before it begins", s.Name)
		}
		parents[s.Name] = named[s.Parent.SpanID().String()]
	}
	for name, want := range map[string]string{
		"event kind ConfigMap": "", "queue stamper": "event kind ConfigMap", "reconcile stamper": "event kind ConfigMap",
		"PUT configmaps": "reconcile stamper",
	} {
		if got, ok := parents[name]; !ok || got != want {
			t.Errorf("span %q: there %v, a child of %q, want of %q; the spans are %v", name, ok, got, want, parents)
		}
	}
}
