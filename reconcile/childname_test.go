// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/reconcile"
)

// The names must never change: objects on servers have them. A change of this table
// breaks every user.
func TestChildName_IsStable_B5(t *testing.T) {
	long := strings.Repeat("long.", 50) + "abc"
	for _, test := range []struct {
		parts              []string
		name, dnsLabelName string
	}{
		{[]string{"blog", "config"}, "blog-config", "blog-config"},
		{[]string{"my-blog", "config"}, "my-blog-config", "my-blog-config"},
		{[]string{"blog", "shard", "0"}, "blog-shard--0", "blog-shard--0"},
		{[]string{"blog-shard", "0"}, "blog-shard-0", "blog-shard-0"},
		{[]string{"a-b", "c"}, "a-b-c", "a-b-c"},
		{[]string{"a", "b-c"}, "a-b-c-2ndsnfv5503m6vcqgc5h", "a-b-c-2ndsnfv5503m6vcqgc5h"},
		{[]string{"a", "b", "c"}, "a-b--c", "a-b--c"},
		{[]string{"a", "b--c"}, "a-b-c-4shlsxz58r5yth0mlcdp", "a-b-c-4shlsxz58r5yth0mlcdp"},
		{[]string{"blog.example", "web"}, "blog.example-web", "blog-example-web-mnmcqqxa533h2bzacqkd"},
		{[]string{"7up", "web"}, "7up-web", "x7up-web-4p5kzd5ldh7h4rdacbl8"},
		{[]string{"Blog", "Web"}, "blog-web-vwpq4pd2cn2ph25dcack", "blog-web-vwpq4pd2cn2ph25dcack"},
		{[]string{"", ""}, "x-747yng3rdrv9wnds0hkj", "x-747yng3rdrv9wnds0hkj"},
		{[]string{"blog", ""}, "blog-samwjnynq2ja4wd73jgv", "blog-samwjnynq2ja4wd73jgv"},
		{[]string{"Ü\x00\xff", "."}, "x-l287b8r238dvhrfcrdl7", "x-l287b8r238dvhrfcrdl7"},
		{[]string{"blog", strings.Repeat("0", 20)}, "blog-00000000000000000000-nm9qh3nwadyyc4y8azhm", "blog-00000000000000000000-nm9qh3nwadyyc4y8azhm"},
		{[]string{long, "web"}, long[:232] + "-t1gsjkb9tndlj5mb11xc", "long-long-long-long-long-long-long-long-lo-t1gsjkb9tndlj5mb11xc"},
	} {
		if got := reconcile.ChildName(test.parts[0], test.parts[1], test.parts[2:]...); got != test.name {
			t.Errorf("ChildName(%.20q) = %q, want %q: the name of a living object has changed", test.parts, got, test.name)
		}
		if got := reconcile.ChildDNSLabel(test.parts[0], test.parts[1], test.parts[2:]...); got != test.dnsLabelName {
			t.Errorf("ChildDNSLabel(%.20q) = %q, want %q: the name of a living object has changed", test.parts, got, test.dnsLabelName)
		}
	}
	for text, want := range map[string]string{
		"":                                  "",
		"blog.example":                      "blog.example",
		"Some_Value":                        "Some_Value",
		"two words":                         "two-words_m0zjtr8p8qnn7b8pr6qn",
		"-":                                 "x_75sy08q968hgk89c338d",
		strings.Repeat("a", 64):             strings.Repeat("a", 42) + "_zzh59zltw35pvjkw7bwv",
		reconcile.ChildDNSLabel("a", "b-c"): "a-b-c-2ndsnfv5503m6vcqgc5h", // a name is its own value
		"a_" + strings.Repeat("0", 20):      "a_00000000000000000000_55snvkvf0k67v2h13hyh",
	} {
		if got := reconcile.LabelValue(text); got != want {
			t.Errorf("LabelValue(%q) = %q, want %q", text, got, want)
		}
	}
}

// Similar arguments give different names: the same text split elsewhere, and names that
// imitate others.
func TestChildName_KeepsLookAlikesApart_B5(t *testing.T) {
	for name, f := range childNames {
		var all [][]string
		texts := []string{"a", "b", "a-b", "a--b", "b-c", "-", "--", "", "A", ".", "a.b", strings.Repeat("a", 63), strings.Repeat("a", 253), strings.Repeat("a", 254)}
		for _, p := range texts {
			for _, q := range texts {
				all = append(all, []string{p, q})
				for _, r := range texts {
					all = append(all, []string{p, q, r})
				}
			}
		}
		for _, parts := range slices.Clone(all) {
			// A parent and a part that spell the cut name of another.
			cut := f(parts)
			for at, c := range cut {
				if c == '-' {
					all = append(all, []string{cut[:at], cut[at+1:]})
				}
			}
		}
		givenTo := map[string]string{}
		for _, parts := range all {
			was, is := givenTo[f(parts)], fmt.Sprintf("%q", parts)
			if was != "" && was != is {
				t.Errorf("%s: %q is the name of %.60s and of %.60s: two controllers would fight over one child", name, f(parts), was, is)
			}
			givenTo[f(parts)] = is
		}
	}
}

var childNames = map[string]func(parts []string) string{
	"ChildName":     func(p []string) string { return reconcile.ChildName(p[0], p[1], p[2:]...) },
	"ChildDNSLabel": func(p []string) string { return reconcile.ChildDNSLabel(p[0], p[1], p[2:]...) },
}

// FuzzChildName: each name is valid, two are equal only for equal arguments, and a name
// is not changed without need.
func FuzzChildName(f *testing.F) {
	f.Add("a-b", "c", "a", "b-c")
	f.Add("a", "b\x00c", "a", "b\x00\x00c")
	f.Add("\xff", "ü", "\xfe", "ü")
	f.Add(strings.Repeat("a", 250), "bc", strings.Repeat("a", 250), "bd")
	f.Add("a.", "b", "a", "b.")
	f.Fuzz(func(t *testing.T, parent, part, otherParent, otherPart string) {
		for name, problems := range map[string][]string{
			reconcile.ChildName(parent, part):            validation.IsDNS1123Subdomain(reconcile.ChildName(parent, part)),
			reconcile.ChildName(parent, part, otherPart): validation.IsDNS1123Subdomain(reconcile.ChildName(parent, part, otherPart)),
			reconcile.ChildDNSLabel(parent, part):        validation.IsDNS1035Label(reconcile.ChildDNSLabel(parent, part)),
			reconcile.LabelValue(parent):                 validation.IsValidLabelValue(reconcile.LabelValue(parent)),
		} {
			if len(problems) > 0 {
				t.Errorf("%q is not valid: %v", name, problems)
			}
		}
		if parent == otherParent && part == otherPart {
			return
		}
		for what, f := range childNames {
			if got := f([]string{parent, part}); got == f([]string{otherParent, otherPart}) {
				t.Errorf("%s: %q is the name of %q and of %q", what, got, []string{parent, part}, []string{otherParent, otherPart})
			}
			if got := f([]string{parent, part}); got == f([]string{parent, part, otherPart}) {
				t.Errorf("%s: %q is the name with and without a further part %q", what, got, otherPart)
			}
		}
		if parent != otherParent && reconcile.LabelValue(parent) == reconcile.LabelValue(otherParent) {
			t.Errorf("%q is the label's value of %q and of %q", reconcile.LabelValue(parent), parent, otherParent)
		}
		plain := parent + "-" + part
		if len(plain) <= 63 && len(part) < 20 && !strings.Contains(part, "-") && part != "" && !strings.HasSuffix(parent, "-") &&
			len(validation.IsDNS1035Label(plain)) == 0 {
			if got := reconcile.ChildDNSLabel(parent, part); got != plain {
				t.Errorf("got %q, want %q: a name that needs no change has one", got, plain)
			}
		}
	})
}
