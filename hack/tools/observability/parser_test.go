// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/flyball-dev/flyball/informer/state"
)

// byPrometheus are the labels that a scrape adds, with Kubernetes service discovery.
var byPrometheus = []string{"namespace", "pod", "job", "instance", "le"}

// judge parses expr and compares it with what is exposed. It returns the metrics and the
// labels that it uses.
func judge(t *testing.T, where, expr string, e exposition) (metrics, used []string) {
	t.Helper()
	text := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h").Replace(expr)
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %q: %v", where, expr, err)
		return nil, nil
	}
	var grouping []string
	known := slices.Clone(byPrometheus)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			f, name := e.family(node.Name)
			if f == nil {
				t.Errorf("%s: %q: no manager exposes %s", where, expr, node.Name)
				return nil
			}
			metrics = append(metrics, name)
			known = append(known, f.labels...)
			for _, m := range node.LabelMatchers {
				if complaint := f.complaint(m); complaint != "" {
					t.Errorf("%s: %q: %s%s", where, expr, node.Name, complaint)
				}
			}
		case *parser.AggregateExpr:
			grouping = append(grouping, node.Grouping...)
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				grouping = append(grouping, node.VectorMatching.MatchingLabels...)
				grouping = append(grouping, node.VectorMatching.Include...)
			}
		}
		return nil
	})
	for _, label := range grouping {
		if !slices.Contains(known, label) {
			t.Errorf("%s: %q: no metric in it has the label %s", where, expr, label)
		}
	}
	return metrics, known
}

// family returns the metric of a name, which may have a suffix such as _bucket.
func (e exposition) family(name string) (*family, string) {
	if f := e.families[name]; f != nil {
		return f, name
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if whole, ok := strings.CutSuffix(name, part); ok && e.families[whole] != nil {
			return e.families[whole], whole
		}
	}
	return nil, ""
}

// rare has, by label, the values that only a cluster in trouble shows.
var rare = map[string]func(value string) bool{
	"code": regexp.MustCompile(`^[1-5][0-9.]{2}$|^<error>$`).MatchString,
	// The states in the code: a misspelt or renamed state is none of them.
	"state": func(value string) bool { return slices.Contains(state.All(), state.State(value)) },
}

// complaint returns what is wrong with m; empty: nothing.
func (f *family) complaint(m *labels.Matcher) string {
	switch {
	case m.Name == model.MetricNameLabel || slices.Contains(byPrometheus, m.Name):
		return ""
	case !slices.Contains(f.labels, m.Name):
		return " has no label " + m.Name
	case strings.Contains(m.Value, "$"): // a variable of the dashboard
		return ""
	}
	values := []string{m.Value}
	if m.Type == labels.MatchRegexp || m.Type == labels.MatchNotRegexp {
		values = strings.Split(m.Value, "|")
	}
	for _, value := range values {
		if !slices.Contains(f.values[m.Name], value) && (rare[m.Name] == nil || !rare[m.Name](value)) {
			return fmt.Sprintf(" was exposed with %s of %q, never with %q", m.Name, f.values[m.Name], value)
		}
	}
	return ""
}
