// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// The test binary is pack if this variable is set.
const asPack = "FLYBALL_TEST_AS_PACK"

func TestMain(m *testing.M) {
	if os.Getenv(asPack) != "" {
		os.Exit(Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// pack runs the command and returns its exit code and what it prints.
func pack(t *testing.T, args ...string) (code int, out, messages string) {
	t.Helper()
	var o, m bytes.Buffer
	code = Run(t.Context(), args, &o, &m)
	return code, o.String(), m.String()
}

func mustPack(t *testing.T, args ...string) string {
	t.Helper()
	code, out, messages := pack(t, args...)
	if code != success {
		t.Fatalf("pack %s exits with %d\n%s", strings.Join(args, " "), code, messages)
	}
	return out
}

func mustRun(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPack_WrongCommandLinesAreExplained(t *testing.T) {
	dir := strings.NewReplacer("DIR", t.TempDir()) // in a word: it may have a space
	for _, c := range []struct{ line, want string }{
		{"", "pack chart"},
		{"nothing", "pack bundle"},
		{"image", "give -o with a directory, or -image and -push"},
		{"image -push", "-image"},
		{"image -o x -platform linux", "write linux/amd64"},
		{"image -o x -platform windows/amd64", "write linux/amd64"},
		{"image -o x -platform linux/arm/v9", "[v5 v6 v7]"},
		{"image -o x -platform linux/arm64,linux/arm64", "twice"},
		{"image -o x -image UPPER", "write registry.example.com/operator:v1"},
		{"image -o x -program a/b", "write operator"},
		{"image -o x . .", "flags come before it"},
		{"chart -version v1 testdata/edited -deployment operator", "flags come before it"},
		{"chart -o DIR/x -deployment operator -version v1 testdata/edited", "give -version 1.2.3"},
		{"chart -o", "flag needs an argument"},
		{"sbom", "give one program"},
		{"image push", "write -push"},
		{"image -pusch", "do you mean -push?\nusage"},
	} {
		args := strings.Fields(c.line)
		for i := range args {
			args[i] = dir.Replace(args[i])
		}
		code, _, messages := pack(t, args...)
		if code != usage || !strings.Contains(messages, c.want) {
			t.Errorf("pack %s: exit code %d, want %d, and %q in\n%s", c.line, code, usage, c.want, messages)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("there is an x")
	}
}

// The commands of the page work, with a registry of the test in place of that of the page.
func TestGuide_ItsCommandsWork(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	dir := repository(t)
	if err := os.CopyFS(filepath.Join(dir, "operator", "config"), os.DirFS("../../../../examples/operator/config")); err != nil {
		t.Fatal(err)
	}
	did := map[string]int{}
	for line := range strings.Lines(read(t, "../../../../docs/packaging.md")) {
		line, found := strings.CutPrefix(strings.TrimSpace(line), "go run github.com/flyball-dev/flyball/cmd/flyball@latest pack ")
		if !found {
			continue
		}
		args := strings.Fields(strings.ReplaceAll(line, "registry.example.com", strings.TrimPrefix(server.URL, "http://")))
		mustPack(t, append([]string{args[0], "-C", filepath.Join(dir, "operator")}, args[1:]...)...)
		did[args[0]]++
	}
	for _, file := range []string{"image.tar", "chart/Chart.yaml", "bundle/bundle.Dockerfile"} {
		read(t, filepath.Join(dir, "operator", "dist", filepath.FromSlash(file)))
	}
	if did["image"] != 2 || did["chart"] != 1 || did["bundle"] != 1 {
		t.Errorf("the page has the commands %v", did)
	}
	// Each value of the chart is on the page.
	for _, value := range regexp.MustCompile(`(?m)^([a-zA-Z]+):`).FindAllStringSubmatch(read(t, filepath.Join(dir, "operator", "dist", "chart", "values.yaml")), -1) {
		if !strings.Contains(read(t, "../../../../docs/packaging.md"), "`"+value[1]) {
			t.Errorf("docs/packaging.md does not name the value %s", value[1])
		}
	}
}
