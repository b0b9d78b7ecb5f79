// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"strings"
	"testing"
)

func TestDoubt_NameABetterKind_Q3(t *testing.T) {
	for _, c := range []struct{ kind, want string }{ // want: in the doubt; empty: there is none
		{"Workshops", "--kind Workshop,"},
		{"Policies", "--kind Policy,"},
		{"Proxies", "--kind Proxy,"},
		{"Branches", "--kind Branch,"},
		{"Classes", "--kind Class,"},
		{"Switches", "--kind Switch,"}, {"Searches", "--kind Search,"}, {"Caches", "--kind Cache,"},
		{"Movies", "--kind Movie,"}, {"HomeMovies", "--kind HomeMovie,"},
		{"Pod", "--kind MyPod"},
		{"Ingress", "--kind MyIngress"},
		{"WORKSHOP", "--kind Workshop"},
		{"Workshop", ""}, {"VM", ""}, {"DNS", ""}, {"JSON", ""}, {"DNSRecord", ""}, {"Address", ""},
		{"Analysis", ""},
		{"Series", ""}, {"TimeSeries", ""}, {"Kubernetes", ""},
		{"Status", ""}, {"Canvas", ""}, {"PodMonitor", ""}, {"HTTPS", "--kind Https"},
	} {
		got := Doubt(c.kind)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want a doubt with %q", c.kind, got, c.want)
		}
	}
}
