// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/informer"
)

// isTheTable holds docs/metrics.md against what is exposed: types and labels by
// name. Requests are not in it: the test sends none; no leadership: it elects nobody;
// and no webhooks: TestManager_WebhooksAreMeasured has some.
func isTheTable(t *testing.T, exposed map[string]string) {
	t.Helper()
	text, err := os.ReadFile("../docs/metrics.md")
	must(t, err)
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+) \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = row[2] + " " + strings.NewReplacer("`", "", ",", "").Replace(strings.TrimSpace(row[3]))
	}
	delete(documented, "rest_client_requests_total")
	delete(documented, "leader_election_master_status")
	delete(documented, "flyball_leader_refused_writes_total")
	maps.DeleteFunc(documented, func(name, _ string) bool { return strings.Contains(name, "_webhook_") })
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

// states are the samples of flyball_informer_state of one ConfigMap informer.
func states(one informer.State) string {
	var lines []string
	for _, s := range informer.States() {
		value := 0
		if s == one {
			value = 1
		}
		lines = append(lines, fmt.Sprintf("flyball_informer_state{kind=%q,scope=%q,state=%q} %d\n", "ConfigMap", "in all namespaces", string(s), value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
