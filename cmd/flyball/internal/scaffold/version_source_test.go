// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// rich has a field of each form that a type may have.
const rich = `// Package v1 is the API.
package v1

import (
	metav1 "meta"

	"schema"
)

//go:generate flyball crds ../...

// GroupVersion of the kinds.
var GroupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// +kubebuilder:subresource:status

// Database is rich.
//
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name=Age
type Database struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   DatabaseSpec
	Status *Status
	Data   map[string]string // top
}

// DatabaseSpec is the desired state.
type DatabaseSpec struct {
	// Engine to run.
	Engine     Engine
	A, B       int32
	Since      metav1.Time
	Ports      []Port
	Pointers   []*Port
	ByName     map[string]Port
	Nested     map[string][]*Port
	Engines    []Engine
	Names      Names
	Optional   *string
	OnePort    *Port
	Conditions []metav1.Time
	Also       Alias
	Port
}

// Engine is a word.
type Engine string

// The engines.
const (
	Postgres Engine = "postgres"
	SQLite   Engine = "sqlite"
)

type Names []string

type Alias = Port

// Port of a server.
type Port struct {
	Number int32
	Label  *Label
}

type Label struct{ Text string }

// IsWell is a method of a person.
func (p Port) IsWell() bool { return p.Number > least }

const least = 1024

// Status is observed.
type Status struct{ Ready bool }

// Backup is another kind.
type Backup struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec struct{ Database string }
}

func (d *Database) DeepCopyObject() any { return d }

func AddToScheme() {}
`

var stubs = map[string]string{
	"meta":          "package v1\n\ntype TypeMeta struct{}\n\ntype ObjectMeta struct{}\n\ntype Time struct{}\n",
	"schema":        "package schema\n\ntype GroupVersion struct{ Group, Version string }\n",
	"resource":      "package resource\n\nfunc Convert[T, Hub any](version, hub any, toHub func(T, Hub) error, fromHub func(Hub, T) error) int { return 0 }\n",
	"encoding/json": "package json\n\nfunc Marshal(any) ([]byte, error) { return nil, nil }\n\nfunc Unmarshal([]byte, any) error { return nil }\n",
}

func parsed(t *testing.T, text string) *versionSource {
	t.Helper()
	s, err := parseVersion(map[string][]byte{"kind.go": []byte(text), "kind_test.go": []byte("package v1\n\nfunc test() {}\n")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func none(string) bool { return false }

// copied returns the package of a new version, checked by its types.
func copied(t *testing.T, text string) string {
	t.Helper()
	s := parsed(t, text)
	out := s.Types("Database", ":service=x", none)
	conversions := s.Conversions("Database", "database", hubVersion{"v1", "apiv1"}, none)
	head := "package v2\n\nimport (\n\tmetav1 \"meta\"\n\t\"schema\"\n\t\"resource\"\n\tapiv1 \"api/v1\"\n"
	if strings.Contains(conversions, "json.") {
		head += "\t\"encoding/json\"\n"
	}
	head += ")\n\nvar GroupVersion = schema.GroupVersion{}\n\nvar _ metav1.Time\n\n"
	all := map[string]string{"api/v1": text, "api/v2": head + out + "\n" + conversions}
	for path, stub := range stubs {
		all[path] = stub
	}
	if _, err := (importer{token.NewFileSet(), all, map[string]*types.Package{}}).Import("api/v2"); err != nil {
		t.Fatal(err)
	}
	return out + "\n" + conversions
}

// importer checks the packages of a map, each once.
type importer struct {
	fset   *token.FileSet
	text   map[string]string
	cached map[string]*types.Package
}

func (o importer) Import(path string) (*types.Package, error) {
	if pkg := o.cached[path]; pkg != nil {
		return pkg, nil
	}
	if o.text[path] == "" {
		return nil, fmt.Errorf("there is no %s", path)
	}
	f, err := parser.ParseFile(o.fset, path+".go", o.text[path], parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, o.text[path])
	}
	pkg, err := (&types.Config{Importer: o, GoVersion: "go1.26"}).Check(path, o.fset, []*ast.File{f}, nil)
	if err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, o.text[path])
	}
	o.cached[path] = pkg
	return pkg, nil
}

func TestSource_CopiesWhatAKindReaches_Q6(t *testing.T) {
	got := copied(t, rich)
	for _, want := range []string{
		"// +kubebuilder:subresource:status\n\n// Database is rich.\n//\n// +kubebuilder:printcolumn:name=Age\n// +flyball:conversion:service=x\ntype Database struct {",
		"Data   map[string]string // top", "// Engine to run.", "// The engines.\nconst (", "func (p Port) IsWell() bool", "const least = 1024", "type Alias = Port",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the copy has no %q:\n%s", want, got)
		}
	}
	for _, other := range []string{"Backup", "storageversion", "DeepCopyObject", "AddToScheme", "go:generate", "sameJSON"} {
		if strings.Contains(got, other) {
			t.Errorf("the copy has %q:\n%s", other, got)
		}
	}
}

// What another kind of the version has brought is not written again.
func TestSource_WritesNothingTwice_Q6(t *testing.T) {
	s := parsed(t, rich)
	there := []string{"Port", "portToV1", "Label", "convertList", "Port.IsWell"}
	has := func(name string) bool { return slices.Contains(there, name) }
	got := s.Types("Database", "", has) + s.Conversions("Database", "database", hubVersion{"v1", "apiv1"}, has)
	for _, name := range []string{"type Port struct", "func portToV1", "type Label", "func convertList", "IsWell"} {
		if strings.Contains(got, name) {
			t.Errorf("the copy has %s again:\n%s", name, got)
		}
	}
	if !strings.Contains(got, "func portFromV1") || !strings.Contains(got, "type Status") {
		t.Errorf("the copy lacks what is not there:\n%s", got)
	}
}

// Forms that are not converted field by field are converted by their JSON.
func TestSource_OtherFormsAreConvertedByJSON_Q6(t *testing.T) {
	for name, field := range map[string]string{
		"an array":        "Fixed [2]Port",
		"local keys":      "ByEngine map[Engine]Port",
		"a generic type":  "Any Template[Port]",
		"a list's type":   "Several Ports",
		"an inner struct": "Inner struct{ Port Port }",
		"another's":       "Other Renamed",
		"unexported":      "hidden Hidden",
	} {
		text := strings.Replace(rich, "	Optional   *string\n", "	"+field+"\n", 1) +
			"\ntype Template[T any] struct{ Of T }\n\ntype Ports []Port\n\ntype Renamed Port\n\ntype Hidden struct{ a Port }\n"
		if got := copied(t, text); !strings.Contains(got, "return sameJSON(from, to)") || strings.Contains(got, "portToV1") {
			t.Errorf("%s is not converted by its JSON:\n%s", name, got)
		}
	}
}

func TestSuffix(t *testing.T) {
	if versionSuffix("v1beta1") != "V1beta1" {
		t.Error(versionSuffix("v1beta1"))
	}
}

const definitions = `# Code generated by flyball crds from Go types. DO NOT EDIT.
---
kind: CustomResourceDefinition
metadata:
  name: backups.example.com
spec:
  group: example.com
  versions:
  - name: v1
    served: true
    storage: true
---
kind: CustomResourceDefinition
metadata:
  name: databases.example.com
spec:
  group: example.com
  versions:
  - additionalPrinterColumns:
    - jsonPath: .a
      name: v1
    deprecated: true
    deprecationWarning: old
    name: v1
    schema:
      openAPIV3Schema:
        type: object
    served: false
    storage: true
  - name: v3
    served: true
    storage: false
`

func TestDefinition_AddsAVersionThatIsNotStored_Q6(t *testing.T) {
	got, err := addDefinitionVersion([]byte(definitions), "databases.example.com", "v1", "v2", "ns", "svc")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(definitions, "  - name: v3\n", `  - additionalPrinterColumns:
    - jsonPath: .a
      name: v1
    name: v2
    schema:
      openAPIV3Schema:
        type: object
    served: true
    storage: false
  - name: v3
`, 1)
	at := strings.LastIndex(want, "  group: ")
	want = want[:at] + `  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service:
          name: svc
          namespace: ns
          path: /convert
      conversionReviewVersions:
      - v1
` + want[at:]
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	again, err := addDefinitionVersion(got, "databases.example.com", "v3", "v1beta1", "ns", "svc")
	if err != nil || strings.Count(string(again), "conversion:") != 1 || !strings.Contains(string(again), "  - name: v1beta1\n    served: true\n    storage: false\n  - additional") && !strings.Contains(string(again), "storage: true\n  - name: v1beta1\n") {
		t.Errorf("%v, a third version gives\n%s", err, again)
	}
}

func TestDefinition_MissingPartsAreErrors_Q6(t *testing.T) {
	for _, c := range []struct{ text, name, from, to, want string }{
		{definitions, "lamps.example.com", "v1", "v2", "no definition lamps.example.com"},
		{definitions, "databases.example.com", "v5", "v2", "no version v5"},
		{definitions, "databases.example.com", "v1", "v3", "already"},
		{"metadata:\n  name: a\n", "a", "v1", "v2", "no versions"},
		{"metadata:\n  name: a\n  versions:\n  - name: v1\n", "a", "v1", "v2", "no spec"},
	} {
		if _, err := addDefinitionVersion([]byte(c.text), c.name, c.from, c.to, "ns", "svc"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s to %s: %v, want an error with %q", c.name, c.from, c.to, err, c.want)
		}
	}
}
