// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var leftover = regexp.MustCompile(`(?i)frontend|example\.flyball\.dev|examples/operator|flyball authors|SPDX|\+kubebuilder:scaffold`)

func TestProject_FilesAreFewAndNameOnlyTheProject_Q2(t *testing.T) {
	for _, p := range []Project{
		{Module: "example.com/me/database", Kind: "Database"},
		{Module: "example.com/me/database", Kind: "Database", Children: []string{"StatefulSet", "Service", "Secret"}, Webhook: true},
		{Module: "github.com/me/dns", Kind: "DNSRecord", Children: []string{"ConfigMap"}, Webhook: true},
		{Module: "github.com/me/orders/v2", Kind: "Order", Children: kindsOf(children)},
		{Module: "example.com/sync", Kind: "Namespace", Builtin: true, Webhook: true, Replicas: 3},
		{Module: "github.com/me/dns", Kind: "DNSRecord", Children: []string{"Job"}, Webhook: true, Replicas: 4},
		{Module: "example.com/sync", Kind: "ConfigMap", Builtin: true, Children: []string{"StatefulSet", "Deployment"}},
	} {
		p.Version = "v1.2.3"
		all, err := filesOf(p)
		if err != nil {
			t.Errorf("%+v: %v", p, err)
			continue
		}
		count := 0
		for name, text := range all {
			if name != "go.sum" {
				count++
			}
			if found := leftover.FindString(string(text)); found != "" {
				t.Errorf("%s %s: %s has %q, which is not the project's", p.Module, p.Kind, name, found)
			}
		}
		if count > 17 {
			t.Errorf("%s %s has %d files without go.sum, want at most 17", p.Module, p.Kind, count)
		}
		for name, text := range all {
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSuffix(line, "\n")
				if len([]rune(line)) > 100 && writtenLines(name) && !strings.HasPrefix(line, "// +kubebuilder:") {
					t.Errorf("%s %s: %s has a line of more than 100 columns:\n%s", p.Module, p.Kind, name, line)
				}
			}
		}
		if lines := strings.Count(string(all["Makefile"]), "\n"); lines == 0 || lines >= 60 {
			t.Errorf("the Makefile has %d lines, want some and fewer than 60", lines)
		}
		if !strings.Contains(string(all["go.mod"]), "\nmodule ") && !strings.HasPrefix(string(all["go.mod"]), "module "+p.Module+"\n") {
			t.Errorf("go.mod begins with %.60q, want the module %s", all["go.mod"], p.Module)
		}
		if strings.Contains(string(all["go.mod"]), "replace ") || !strings.Contains(string(all["go.mod"]), "flyball/simulate v1.2.3") {
			t.Errorf("go.mod does not require v1.2.3:\n%s", all["go.mod"])
		}
	}
}

// writtenLines reports whether people write the lines of a file: flyball crds, the go command and the
// text of Markdown have others.
func writtenLines(name string) bool {
	return isGo(name) || name == "Makefile" || strings.HasSuffix(name, ".yaml") && name != "config/crd.yaml"
}

// The program of each form of project is checked without its imports, so that names, returns
// and unused variables are.
func TestProject_EachFormIsAProgram_Q1(t *testing.T) {
	for _, p := range []Project{
		{Kind: "Database"},
		{Kind: "Database", Webhook: true, Children: []string{"StatefulSet", "Deployment", "Secret"}},
		{Kind: "Database", Webhook: true, Children: []string{"ConfigMap"}},
		{Kind: "Database", Children: []string{"Job", "Service"}},
		{Kind: "Database", Children: []string{"Job", "Deployment"}},
		{Kind: "Namespace", Builtin: true, Webhook: true, Replicas: 2},
		{Kind: "Database", Webhook: true, Replicas: 2},
		{Kind: "ConfigMap", Builtin: true, Children: []string{"Deployment"}},
	} {
		p.Module, p.Version = "example.com/me/database", "v1.2.3"
		all, err := filesOf(p)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		var tree []*ast.File
		for name, text := range all {
			if isGo(name) && !strings.Contains(name, "/") {
				f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				tree = append(tree, f)
			}
		}
		conf := types.Config{GoVersion: "go1.26", Importer: noImports{}, Error: func(err error) {
			if !strings.Contains(err.Error(), "could not import") && !strings.Contains(err.Error(), "imported and not used") {
				t.Errorf("%s with %v: %v", p.Kind, p.Children, err)
			}
		}}
		_, _ = conf.Check("main", fset, tree, nil) // it calls Error
	}
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("none") }

func TestProject_InvalidInputIsExplainedAndNothingIsWritten_Q3(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("full/.git", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(p *Project)
		want   string // in the error
	}{
		{func(p *Project) { p.Kind = "" }, "--kind Database"},
		{func(p *Project) { p.Kind = "database" }, "--kind Database"},
		{func(p *Project) { p.Kind = "my-database" }, "--kind MyDatabase"},
		{func(p *Project) { p.Kind = "Date_base" }, "upper camel case"},
		{func(p *Project) { p.Kind = "Datenbänke" }, "upper camel case"},
		{func(p *Project) { p.Kind = "type" }, "MyType"},
		{func(p *Project) { p.Kind = "Range" }, "MyRange"},
		{func(p *Project) { p.Kind = "String" }, "MyString"},
		{func(p *Project) { p.Kind = strings.Repeat("A", 51) }, "at most 50"},
		{func(p *Project) { p.Kind = "Deployment" }, "is also a child"},
		{func(p *Project) { p.Kind = "Client" }, `needs the name "client"`},
		{func(p *Project) { p.Kind = "Reconciler" }, `needs the name "reconciler"`},
		{func(p *Project) { p.Kind = "Label" }, `needs the name "labels"`},
		{func(p *Project) { p.Kind, p.Children = "Service", []string{"Service"} }, "is also a child"},
		{func(p *Project) { p.Kind, p.Builtin = "Database", true }, "--kind ConfigMap, Namespace"},
		{func(p *Project) { p.Kind, p.Builtin, p.Children = "Secret", true, []string{"Secret"} }, "is also a child"},
		{func(p *Project) { p.Children = []string{"Gadget"} }, "--children ConfigMap,CronJob"},
		{func(p *Project) { p.Children = []string{"Service", "Service"} }, "twice"},
		{func(p *Project) { p.Children = []string{""} }, "--children ConfigMap,CronJob"},
		{func(p *Project) { p.Group = "databases" }, "at least two labels"},
		{func(p *Project) { p.Group = "Databases.example.com" }, "lower case"},
		{func(p *Project) { p.Group = "-a.example.com" }, "lower case"},
		{func(p *Project) { p.Group = "apps.k8s.io" }, "reserved"},
		{func(p *Project) { p.Module = "" }, "example.com/me/database"},
		{func(p *Project) { p.Module = "database" }, "domain name"},
		{func(p *Project) { p.Module = "Example.com/database" }, "lower case"},
		{func(p *Project) { p.Module = "example.com//database" }, "empty"},
		{func(p *Project) { p.Module = "example.com/database/" }, "empty"},
		{func(p *Project) { p.Module = "example.com/.database" }, "dot"},
		{func(p *Project) { p.Module = "example.com/database." }, "dot"},
		{func(p *Project) { p.Module = "example.com/data base" }, "letters"},
		{func(p *Project) { p.Module = "example.com/database/v1" }, "leave it out"},
		{func(p *Project) { p.Module = "example.com/database/v02" }, "leave it out"},
		{func(p *Project) { p.Module = "gopkg.in/database" }, ".v2"},
		{func(p *Project) { p.Module = "example.com/internal/database" }, "another meaning"},
		{func(p *Project) { p.Module = flyballModule + "/database" }, "Flyball's own"},
		{func(p *Project) { p.Replicas = 1 }, "2 to 512"},
		{func(p *Project) { p.Replicas = -1 }, "2 to 512"},
		{func(p *Project) { p.Replicas = 513 }, "2 to 512"},
		{func(p *Project) { p.Dir = "full" }, "--dir"},
		{func(p *Project) { p.Replace = "missing" }, "not a clone"},
		{func(p *Project) { p.Kind, p.Group, p.Dir = "database", "databases", "full" }, "at least two labels"},
	} {
		p := Project{Module: "example.com/me/database", Kind: "Database", Version: "v1.2.3"}
		c.change(&p)
		if _, err := p.Write(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want an error with %q", p, err, c.want)
		}
		if left, err := os.ReadDir("."); err != nil || len(left) != 1 {
			t.Fatalf("%+v: %v, %v is there, want nothing new", p, left, err)
		}
	}
}

func TestProject_Defaults(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ module, dir, group string }{
		{"example.com/me/database", "database", "example.com"},
		{"example.com/me/db.v2", "db.v2", "example.com"},
		{"example.com/me/orders/v2", "orders", "example.com"},
		{"gopkg.in/me/frames.v3", "frames.v3", "me.example.com"},
		{"github.com/Me/thing", "thing", "me.example.com"},
		{"github.com/my_self/things", "things", "example.com"},
		{"one.example.com", "one.example.com", "one.example.com"},
	} {
		w, err := Project{Module: c.module, Kind: "Database", Version: "v1.2.3"}.Write()
		if err != nil || w.Dir != c.dir || w.Group != c.group {
			t.Errorf("%s: directory %q, group %q, %v; want %q, %q", c.module, w.Dir, w.Group, err, c.dir, c.group)
		}
		for _, name := range w.Files {
			if _, err := os.Stat(filepath.Join(c.dir, name)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestNoun(t *testing.T) {
	for _, c := range []struct{ kind, variable, several, plural string }{
		{"Database", "database", "databases", "databases"},
		{"PostgresCluster", "postgresCluster", "postgresClusters", "postgresclusters"},
		{"DNSRecord", "dnsRecord", "dnsRecords", "dnsrecords"},
		{"VM", "vm", "vms", "vms"},
		{"Policy", "policy", "policies", "policies"},
		{"Gateway", "gateway", "gateways", "gateways"},
		{"Mesh", "mesh", "meshes", "meshes"},
		{"Proxy", "proxy", "proxies", "proxies"},
		{"Index", "index", "indexes", "indexes"},
		{"S3Bucket", "s3Bucket", "s3Buckets", "s3buckets"},
	} {
		if n := nounOf(c.kind); n.variable != c.variable || n.several != c.several || n.plural != c.plural {
			t.Errorf("%s: %+v, want %+v", c.kind, n, c)
		}
	}
}

// A Job reports its end, by itself as Ready and beside a workload as a condition of its own.
func TestProject_AJobReportsItsEnd_Q1(t *testing.T) {
	for _, c := range []struct{ children, want string }{
		{"Job", `conditions.True("Ready", reason, message)`},
		{"Deployment,Job", "job := jobFor(gadget)\n\t_, failure := r.children.Apply(ctx, gadget, deployment, job)\n"},
		{"Deployment,Job", "\tif failure == nil {\n\t\tsetComplete(ctx, updated, job)\n\t}\n"},
		{"Job,StatefulSet", `conditions.True("Complete", "Complete", "the Job is complete")`},
	} {
		all, err := filesOf(Project{Module: "example.com/x", Kind: "Gadget", Children: strings.Split(c.children, ",")})
		if err != nil {
			t.Fatal(err)
		}
		if text := string(all["reconciler.go"]); !strings.Contains(text, c.want) {
			t.Errorf("%s: reconciler.go lacks %s\n%s", c.children, c.want, text)
		}
	}
}

// Each child that can be named is made, watched and read, on its own and beside the others.
func TestProject_EachChildHasItsParts_Q1(t *testing.T) {
	all, err := filesOf(Project{Module: "example.com/x", Kind: "Gadget", Children: kindsOf(children)})
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range children {
		hasParts(t, child, string(all["reconciler.go"]))
	}

	for _, child := range children {
		for _, builtin := range []bool{false, true} {
			p := Project{Module: "example.com/x", Kind: "Gadget", Children: []string{child.kind}, Builtin: builtin}
			if builtin {
				p.Kind = "Namespace"
			}
			all, err := filesOf(p)
			if err != nil {
				t.Errorf("%s: %v", child.kind, err)
				continue
			}
			text := string(all["reconciler.go"])
			hasParts(t, child, text)
			if has := strings.Contains(text, "deploymentFor"); has != slices.Contains([]string{"Deployment"}, child.kind) {
				t.Errorf("%s: reconciler.go has deploymentFor: %v\n%s", child.kind, has, text)
			}
		}
	}
}

func hasParts(t *testing.T, child builtin, text string) {
	t.Helper()
	several := child.noun().several
	for _, want := range []string{"func " + child.builder() + "(", several + " := informer.For[", "reconcile.Children(" + several + ")", "source.Owned(" + several + ","} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%s: reconciler.go has %q %d times, want once:\n%s", child.kind, want, strings.Count(text, want), text)
		}
	}
}
