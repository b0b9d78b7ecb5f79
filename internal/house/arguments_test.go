// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"bytes"
	"strings"
	"testing"
)

// tellsFlags are what programs parse their flags with that then look at the arguments: a word
// that is not a flag, such as one without its dash, is refused.
var tellsFlags = []string{
	"manager.ParseFlags(", "commandline.Parse(", "commandline.Flags(", "commandline.Arguments(", ".NArg()",
}

// withArguments are the programs whose arguments have a meaning, in modules that the root is
// not linked into. Their tests show what they do with other words.
var withArguments = map[string]string{
	"hack/tools/licenses":         "takes directories",
	"hack/guests/kubernetes/kube": "runs programs of Kubernetes with their arguments",
}

// Ignored arguments turn `operator simulate` into a run on the real cluster.
func TestHouse_ProgramsRefuseArguments(t *testing.T) {
	programs, refuse := map[string]bool{}, map[string]bool{}
	for _, f := range sources(t) {
		if f.isTest() || f.ast.Name.Name != "main" {
			continue
		}
		programs[f.dir] = programs[f.dir] || bytes.Contains(f.text, []byte("\nfunc main() {"))
		for _, call := range tellsFlags {
			refuse[f.dir] = refuse[f.dir] || bytes.Contains(f.text, []byte(call))
		}
	}
	if len(programs) < 10 {
		t.Fatalf("the programs are %v; this test looks at too few", programs)
	}
	for dir, is := range programs {
		if is && !refuse[dir] && withArguments[dir] == "" {
			t.Errorf(
				"%s ignores arguments: parse its flags with one of %s", dir, strings.Join(tellsFlags, ", "),
			)
		}
	}
	for dir := range withArguments {
		if !programs[dir] {
			t.Errorf("the table has %s, which is not a program", dir)
		}
	}
}
