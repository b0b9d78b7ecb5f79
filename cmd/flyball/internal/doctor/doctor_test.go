// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun_MisuseSaysWhatToWrite(t *testing.T) {
	sample := filepath.Join(t.TempDir(), "sample.yaml")
	if err := os.WriteFile(sample, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-samples", sample}, ExitUsage, "give it and its arguments after --"},
		{[]string{"--", "/bin/true"}, ExitUsage, "samples are missing"},
		{[]string{"-stub", "Certificate", "--", "/bin/true"}, ExitUsage, "write KIND=FILE"},
		{[]string{"-samples", sample, "-webhooks", sample, "--", "/bin/true"}, ExitFailed, "has no webhook configurations"},
		{[]string{"-samples", sample, "-with", " ", "--", "/bin/true"}, ExitFailed, "has no name"},
		{[]string{"-suite"}, ExitUsage, "give it and its arguments after --"},
		{[]string{"-suite", "-assets", "nowhere", "--", "go", "test", "."}, ExitFailed, "name a directory that apiserver install has written"},
		{[]string{"-surprise"}, ExitUsage, "flag provided but not defined"},
		{[]string{"-samples", "nowhere", "--", "/bin/true"}, ExitFailed, "no such file"},
		{[]string{"-h"}, ExitSound, "usage: flyball doctor"},
	} {
		var out, problems strings.Builder
		if code := Run(t.Context(), c.args, &out, &problems); code != c.code || !strings.Contains(problems.String(), c.want) {
			t.Errorf("%v ends with %d and %s, want %d and %q", c.args, code, problems.String(), c.code, c.want)
		}
	}
}
