// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package flyball_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// snippetHome is the directory in whose module snippets are compiled: it sees
// the root and the Website of the example.
const snippetHome = "examples/website"

// snippetImports are the packages that a snippet may name without saying where
// they come from, as the text around it does.
var snippetImports = map[string]string{
	"client":       module + "/client",
	"clientgo":     module + "/informer/clientgo",
	"byresource":   module + "/informer/clientgo/byresource",
	"factory":      module + "/informer/clientgo/factory",
	"clientsource": module + "/source/clientgo",
	"envtest":      module + "/envtest",
	"informer":     module + "/informer",
	"informertest": module + "/informer/informertest",
	"kit":          module + "/simulate/kit",
	"simtest":      module + "/simulate/simtest",
	"manager":      module + "/manager",
	"queueadapter": module + "/workqueue/clientgo",
	"reconcile":    module + "/reconcile",
	"simulate":     module + "/simulate",
	"source":       module + "/source",
	"webhook":      module + "/webhook",
	"workqueue":    module + "/workqueue",
	"webv1":        module + "/examples/website/api/v1",

	"appsv1":   "k8s.io/api/apps/v1",
	"batchv1":  "k8s.io/api/batch/v1",
	"corev1":   "k8s.io/api/core/v1",
	"metav1":   "k8s.io/apimachinery/pkg/apis/meta/v1",
	"policyv1": "k8s.io/api/policy/v1",

	"apierrors":          "k8s.io/apimachinery/pkg/api/errors",
	"cache":              "k8s.io/client-go/tools/cache",
	"clientqueue":        "k8s.io/client-go/util/workqueue",
	"errgroup":           "golang.org/x/sync/errgroup",
	"events":             "k8s.io/client-go/tools/events",
	"field":              "k8s.io/apimachinery/pkg/util/validation/field",
	"informers":          "k8s.io/client-go/informers",
	"internalinterfaces": "k8s.io/client-go/informers/internalinterfaces",
	"kubernetes":         "k8s.io/client-go/kubernetes",
	"labels":             "k8s.io/apimachinery/pkg/labels",
	"rest":               "k8s.io/client-go/rest",
	"propagation":        "go.opentelemetry.io/otel/propagation",
	"runtime":            "k8s.io/apimachinery/pkg/runtime",
	"schema":             "k8s.io/apimachinery/pkg/runtime/schema",
	"scheme":             "k8s.io/client-go/kubernetes/scheme",
	"trace":              "go.opentelemetry.io/otel/trace",
	"unstructured":       "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured",
	"watch":              "k8s.io/apimachinery/pkg/watch",

	"context": "context",
	"errors":  "errors",
	"flag":    "flag",
	"fmt":     "fmt",
	"os":      "os",
	"x509":    "crypto/x509",
	"strconv": "strconv",
	"strings": "strings",
	"testing": "testing",
	"time":    "time",
}

// compiled marks the Go block that follows it. The file it names stands in
// testdata/snippets and declares what the text leaves to the reader.
var compiled = regexp.MustCompile(`^<!-- compiled with (\S+) -->$`)

// peersMark stands before a Go block that uses other frameworks. Its declarations stand in files of peersHome, whose module
// depends on them.
const (
	peersHome = "hack/bench/migration"
	peersMark = "<!-- compiled in " + peersHome + " -->"
)

// snippet is one marked block of the documentation.
type snippet struct {
	file string
	line int // of the block's first line
	with string
	text string
}

// Every Go block of the documentation that is marked as compiled does compile,
// and every Go block is marked.
func TestSnippets_Compile(t *testing.T) {
	var docs []string
	for _, glob := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, found...)
	}
	var all []snippet
	for _, doc := range docs {
		found, err := snippetsOf(doc)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		t.Fatal("no snippet in the documentation; this test looks at nothing")
	}

	home, err := filepath.Abs(snippetHome)
	if err != nil {
		t.Fatal(err)
	}
	peers := peersCode(t)
	overlay := map[string]string{}
	dirs := []string{}
	for i, s := range all {
		if s.with == "" {
			t.Errorf("%s:%d: a Go block that nobody compiles; mark it: <!-- compiled with name.go -->", s.file, s.line)
			continue
		}
		if s.with == peersHome {
			if !strings.Contains(peers, "\n"+s.text) {
				t.Errorf("%s:%d: no file of %s has this block; put it there, in the same words", s.file, s.line, peersHome)
			}
			continue
		}
		text, err := s.program()
		if err != nil {
			t.Errorf("%s:%d: %v", s.file, s.line, err)
			continue
		}
		real := filepath.Join(t.TempDir(), "snippet.go")
		if err := os.WriteFile(real, text, 0o600); err != nil {
			t.Fatal(err)
		}
		with, err := filepath.Abs(filepath.Join("testdata/snippets", s.with))
		if err != nil {
			t.Fatal(err)
		}
		dir := fmt.Sprintf("snippet%d", i)
		overlay[filepath.Join(home, dir, "snippet.go")] = real
		overlay[filepath.Join(home, dir, "with.go")] = with
		dirs = append(dirs, "./"+dir)
	}
	if len(dirs) > 0 {
		compile(t, home, overlay, dirs)
	}
}

// peersCode is all code of peersHome, with a line's end before each declaration.
func peersCode(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(peersHome + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files (%v)", peersHome, err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// compile compiles packages whose directories exist only in overlay. They are
// built as this test was, so that the build cache serves both.
func compile(t *testing.T, home string, overlay map[string]string, dirs []string) {
	t.Helper()
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(name, list, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"build", "-overlay", name}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, dirs...)...)
	cmd.Dir = home
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s in %s: %v\n%s", strings.Join(cmd.Args[1:], " "), snippetHome, err, out)
	}
}

// program is the snippet as a Go file, with its imports, and with its lines
// numbered as in the document. Its package is not main, so that nothing is linked.
func (s snippet) program() ([]byte, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "", "package snippet\n"+s.text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && snippetImports[id.Name] != "" {
				used[id.Name] = true
			}
		}
		return true
	})
	var out bytes.Buffer
	out.WriteString("package snippet\n")
	for _, name := range slices.Sorted(maps.Keys(used)) {
		fmt.Fprintf(&out, "import %s %q\n", name, snippetImports[name])
	}
	document, err := filepath.Abs(s.file)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&out, "//line %s:%d\n%s", document, s.line, s.text)
	return out.Bytes(), nil
}

// snippetsOf returns the Go blocks of a document.
func snippetsOf(file string) ([]snippet, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []snippet
	var open *snippet // the block being read
	mark := ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		switch found := compiled.FindStringSubmatch(line); {
		case open != nil && line == "```":
			out = append(out, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case line == "```go":
			open = &snippet{file: file, line: number + 1, with: mark}
			mark = ""
		case found != nil:
			mark = found[1]
		case line == peersMark:
			mark = peersHome
		case line != "":
			mark = ""
		}
	}
	return out, lines.Err()
}
