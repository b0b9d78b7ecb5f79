// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// linked are the modules that an operator links when it uses all packages. A new line needs
// an ADR.
var linked = []string{
	// Direct choices.
	"github.com/go-logr/logr",
	"github.com/klauspost/compress", // ADR 0066; only with informer/compact
	"github.com/prometheus/client_golang",
	"go.opentelemetry.io/otel", // ADR 0038; only the API, as the next
	"go.opentelemetry.io/otel/trace",
	"go.yaml.in/yaml/v3",
	"golang.org/x/sync",
	"google.golang.org/protobuf",
	"k8s.io/api",
	"k8s.io/apimachinery",
	"k8s.io/client-go",
	"k8s.io/utils",
	"sigs.k8s.io/json",
	"sigs.k8s.io/yaml",

	// Dependencies of client-go and apimachinery.
	"github.com/davecgh/go-spew",
	"github.com/emicklei/go-restful/v3",
	"github.com/fxamacker/cbor/v2",
	"github.com/go-openapi/jsonpointer",
	"github.com/go-openapi/jsonreference",
	"github.com/go-openapi/swag",
	"github.com/go-openapi/swag/cmdutils",
	"github.com/go-openapi/swag/conv",
	"github.com/go-openapi/swag/fileutils",
	"github.com/go-openapi/swag/jsonutils",
	"github.com/go-openapi/swag/loading",
	"github.com/go-openapi/swag/mangling",
	"github.com/go-openapi/swag/netutils",
	"github.com/go-openapi/swag/pools",
	"github.com/go-openapi/swag/stringutils",
	"github.com/go-openapi/swag/typeutils",
	"github.com/go-openapi/swag/yamlutils",
	"github.com/google/gnostic-models",
	"github.com/google/uuid",
	"github.com/json-iterator/go",
	"github.com/modern-go/concurrent",
	"github.com/modern-go/reflect2",
	"github.com/pmezard/go-difflib",
	"github.com/spf13/pflag",
	"github.com/x448/float16",
	"go.yaml.in/yaml/v2",
	"golang.org/x/net",
	"golang.org/x/oauth2",
	"golang.org/x/sys",
	"golang.org/x/term",
	"golang.org/x/text",
	"golang.org/x/time",
	"gopkg.in/evanphx/json-patch.v4",
	"gopkg.in/inf.v0",
	"k8s.io/klog/v2",
	"k8s.io/kube-openapi",
	"sigs.k8s.io/randfill",
	"sigs.k8s.io/structured-merge-diff/v6",

	// Dependencies of Prometheus's client.
	"github.com/beorn7/perks",
	"github.com/cespare/xxhash/v2",
	"github.com/munnerz/goautoneg",
	"github.com/prometheus/client_model",
	"github.com/prometheus/common",
	"github.com/prometheus/procfs",
}

// Each module is for one kind of reader (ADR 0096).
func TestHouse_ThereAreEightModules(t *testing.T) {
	var modules []string
	for _, pattern := range []string{"go.mod", "*/go.mod", "*/*/go.mod", "*/*/*/go.mod", "*/*/*/*/go.mod"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		modules = append(modules, found...)
	}
	if len(modules) != 8 {
		t.Errorf("there are %d modules, want eight; whoever adds one changes ADR 0096: %v", len(modules), modules)
	}
}

func TestHouse_AnOperatorLinksOnlyListedModules(t *testing.T) {
	who := map[string]string{} // module → the package of it that is linked
	for line := range strings.Lines(goCommand(t, "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{$.ImportPath}}{{end}}", "./...")) {
		mod, pkg, _ := strings.Cut(strings.TrimSpace(line), " ")
		if mod != "" && mod != module && who[mod] == "" {
			who[mod] = pkg
		}
	}
	if len(who) == 0 {
		t.Fatal("go list names no dependency at all; this test looks at nothing")
	}
	for mod, pkg := range who {
		if !slices.Contains(linked, mod) {
			t.Errorf("an operator would link module %s (package %s), which is not on the list in internal/house/dependencies_test.go", mod, pkg)
		}
	}
}

// openedByImport registers profiles in http.DefaultServeMux, without any guard.
const openedByImport = "net/http/pprof"

// serverParts are modules that only an API server needs. An operator links none of them,
// and the simulated server has no foreign store or transport.
var serverParts = []string{
	"k8s.io/apiextensions-apiserver", "k8s.io/apiserver", "github.com/google/cel-go", "go.etcd.io/etcd", "google.golang.org/grpc",
}

func TestHouse_PartsOfAServerStayOut(t *testing.T) {
	for _, c := range []struct {
		dir       string
		forbidden []string
	}{{".", append(slices.Clone(serverParts), openedByImport)}, {"simulate", serverParts[3:]}} {
		packages := goCommandIn(t, c.dir, "list", "-deps", "./...")
		if packages == "" {
			t.Fatalf("go list names no dependency of %s; this test looks at nothing", c.dir)
		}
		for line := range strings.Lines(packages) {
			pkg := strings.TrimSpace(line)
			if slices.ContainsFunc(c.forbidden, func(part string) bool { return pkg == part || strings.HasPrefix(pkg, part+"/") }) {
				t.Errorf("%s links %s", c.dir, pkg)
			}
		}
	}
}

// generated are packages of client-go that bring every version of every built-in kind into a
// program: a third of an operator. Package init of each version keeps its types, so the linker
// cannot leave them out (ADR 0080).
var generated = []string{
	"k8s.io/client-go/applyconfigurations", "k8s.io/client-go/discovery", "k8s.io/client-go/informers", "k8s.io/client-go/kubernetes",
	"k8s.io/client-go/restmapper", "k8s.io/client-go/tools/events", "k8s.io/client-go/tools/leaderelection",
}

// reflecting are packages that call methods by their names, so that the linker keeps all
// exported methods of all types.
var reflecting = []string{"html/template", "text/template"}

func TestHouse_AnOperatorLinksNoGeneratedClients(t *testing.T) {
	packages := goCommandIn(t, "examples/operator", "list", "-deps", "-tags", "production", ".")
	if packages == "" {
		t.Fatal("go list names no dependency of the operator; this test looks at nothing")
	}
	beta := regexp.MustCompile(`^k8s\.io/api/.*/v\d+(alpha|beta)\d+$`)
	for line := range strings.Lines(packages) {
		pkg := strings.TrimSpace(line)
		for _, part := range slices.Concat(generated, reflecting) {
			if pkg == part || strings.HasPrefix(pkg, part+"/") {
				t.Errorf("an operator would link %s, and be some megabytes larger", pkg)
			}
		}
		if beta.MatchString(pkg) && pkg != "k8s.io/api/scheduling/v1alpha3" { // batch/v1 has a field of it
			t.Errorf("an operator would link %s, a version that is not stable", pkg)
		}
	}
}

// Programs without compact informers do not link their compression. Commands under hack may.
func TestHouse_OnlyCompactInformersLinkTheCompression(t *testing.T) {
	const compress, user = "github.com/klauspost/compress", module + "/informer/compact"
	for line := range strings.Lines(goCommand(t, "list", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}`, "./...")) {
		pkg, imported, _ := strings.Cut(strings.TrimSpace(line), " ")
		if pkg != user && !strings.HasPrefix(pkg, module+"/hack/") && (imported == user || strings.HasPrefix(imported, compress)) {
			t.Errorf("%s imports %s, so that every program links it", pkg, imported)
		}
	}
}
