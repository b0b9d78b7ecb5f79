// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An example that is copied out is a module of its own. The commands are those of its README,
// for a clone; what they test is compiled here, and run where the example stands.
func TestExamples_AreCopiedOutAsTheirReadmesSay(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles each example's tests")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	readmes, err := filepath.Glob("*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var copied []string
	for _, readme := range readmes {
		text, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
		_, section, found := strings.Cut(string(text), "## Copy it out\n")
		if !found {
			continue
		}
		copied = append(copied, filepath.Dir(readme))
		commands := regexp.MustCompile(`(?m)^    (.+)$`).FindAllStringSubmatch(section, -1)
		var script []string
		for _, c := range commands {
			if !strings.HasPrefix(c[1], "go mod init ") { // it needs a release
				script = append(script, regexp.MustCompile(`go test\b`).ReplaceAllString(c[1], "go test -run '^$'"))
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", strings.Join(script, "\n"))
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK=off")
		home := t.TempDir()
		for _, variable := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOTOOLCHAIN"} {
			value, err := exec.CommandContext(t.Context(), "go", "env", variable).Output()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, variable+"="+strings.TrimSpace(string(value)))
		}
		cmd.Env = append(cmd.Env, "HOME="+home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", readme, err, strings.Join(script, "\n"), out)
		}
	}
	if want := []string{"classic", "configmapsync", "controllerruntime", "dynamic"}; !slices.Equal(copied, want) {
		t.Errorf("the READMEs of %q say how to copy the example out, want %q", copied, want)
	}
}
