// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"go/ast"
	"path"
	"regexp"
	"strings"
	"testing"
)

// promises are the numbers in the package comments. Each has a test whose name ends in the
// number and a mutant that removes the promise's guard.
var promises = map[string][]string{
	"workqueue":                   {"W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "W9", "W11", "W12", "W13"},
	"informer":                    {"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I13", "I14", "D4", "D6"},
	"informer/internal/jsonplan":  {"D1"},
	"informer/internal/protoplan": {"D1"},
	"informer/internal/share":     {"D2", "D3"},
	"informer/compact":            {"D5"},
	"bridge/clientgo":             {"G1", "G2", "G3", "G4", "G5", "G9", "G10", "G11", "G15", "G16"},
	"bridge/clientgo/byresource":  {"G6", "G7"},
	"bridge/clientgo/factory":     {"G12", "G13"},
	"bridge/clientgo/queues":      {"G8", "G14"},
	"bridge/controllerruntime":    {"G17", "G18"},
	"source":                      {"W10"},
	"reconcile":                   {"R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R15", "R16", "R17", "R18", "R28", "R29", "R30", "R31", "R32"},
	"manager":                     {"M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "M9", "M10", "M11", "M12", "M13", "M14", "M15", "M16", "O6", "O7", "O8"},
	"manager/internal/inspect":    {"M24", "M32"},
	"manager/console":             {"M25", "M26"},
	"manager/internal/actions":    {"M27"},
	"internal/recording":          {"M28", "M29", "M30"},
	"internal/ownership":          {"M31", "M33", "M34"},
	"client":                      {"C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10", "C11", "C12", "C13", "C16"},
	"resource":                    {"O1", "O2", "O9"},
	"cmd/flyball/internal/crds":   {"O3", "O4", "O5"},
	"resource/resourcetest":       {"O10"},
	"rights":                      {"P1", "P2", "P3"},
	"cmd/flyball":                 {"Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7"},
	"cmd/flyball/internal/pack":   {"L1", "L2", "L3", "L4", "L5", "L6"},
	"webhook":                     {"H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8"},
	"simulate":                    {"S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S14", "S15", "S16", "S17", "S18", "S19", "S20", "S21", "S22", "S23", "S24", "S25", "S26", "S27", "S28", "S29", "S30", "S31"},
	"simulate/kit":                {"K1", "K2", "K3", "K4", "K5", "K6", "K7", "K8", "K9", "K10", "K11", "K12", "K13", "K14", "K17"},
}

func TestHouse_EachPromiseHasItsTestAndItsMutant(t *testing.T) {
	tests := strings.Join(testFunctions(t), "\n")
	mutants := strings.Join(glob(t, "hack/mutants/*.mutant"), "\n")
	for dir, numbers := range promises {
		for _, number := range numbers {
			if !hasTest(tests, number) {
				t.Errorf("%s: promise %s has no test; its name ends in _%s", dir, number, number)
			}
			if !strings.Contains(mutants, "/"+number+"-") {
				t.Errorf("%s: promise %s has no mutant; hack/mutants/%s-slug.mutant removes its guard", dir, number, number)
			}
		}
	}
}

func TestHouse_EachPromiseIsInItsPackageComment(t *testing.T) {
	for dir, numbers := range promises {
		comment, last := read(t, dir+"/doc.go"), 0
		for _, number := range numbers {
			found := regexp.MustCompile(`(?m)^//\s+(?:- )?`+number+`\b`).FindAllStringIndex(comment, -1)
			if len(found) != 1 {
				t.Errorf("%s/doc.go: promise %s begins %d lines of the package comment, want one", dir, number, len(found))
				continue
			}
			if found[0][0] < last {
				t.Errorf("%s/doc.go: promise %s stands before those that precede it", dir, number)
			}
			last = found[0][0]
		}
	}
}

// A page that cites a promise, a fault or an invariant links where it is stated, unless it states
// it itself. The first letter of a code belongs to one family of packages, so none is used twice.
func TestHouse_CitedCodesAreLinks(t *testing.T) {
	code := regexp.MustCompile(`\b[A-Z][0-9]{1,2}\b`)
	quoted := regexp.MustCompile("(?ms)^ *```.*?^ *```|``.*?``|`[^`]*`|^\\[[A-Z][0-9]+\\]: .*?$|^#.*?$|<!--.*?-->")
	linked := regexp.MustCompile(`\[([^]]*)\](?:\([^)]*\))?`)
	pages := append([]string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"}, glob(t, "docs/*.md")...)
	cited, tests := 0, strings.Join(testFunctions(t), "\n")
	for _, page := range pages {
		text := read(t, page)
		for _, m := range regexp.MustCompile(`(?m)^\[([A-Z][0-9]{1,2})\]: (\S+)`).FindAllStringSubmatch(text, -1) {
			cited++
			if home := path.Join(path.Dir(page), m[2]); !states(read(t, home), m[1]) {
				t.Errorf("%s: [%s] links %s, which does not state it", page, m[1], home)
			}
		}
		prose := quoted.ReplaceAllString(text, "")
		for _, m := range linked.FindAllStringSubmatch(prose, -1) {
			if code.FindString(m[1]) == m[1] && m[0] == "["+m[1]+"]" && m[1] != "" && !strings.Contains(text, "\n["+m[1]+"]: ") {
				t.Errorf("%s: [%s] has no link; end the page with the line [%s]: FILE", page, m[1], m[1])
			}
		}
		for _, c := range code.FindAllString(linked.ReplaceAllString(prose, ""), -1) {
			if !states(text, c) && hasTest(tests, c) {
				t.Errorf("%s cites %s without a link; write [%s], and end the page with the line [%s]: FILE", page, c, c, c)
			}
		}
	}
	if cited == 0 {
		t.Error("no page cites a code; this test looks at nothing")
	}
}

// states reports whether a page or package comment has an entry of this code.
func states(text, code string) bool {
	return regexp.MustCompile(`(?m)^(?://\s+(?:- )?|\| |- (?:\*\*)?)` + code + `\b`).MatchString(text)
}

// hasTest reports whether one of the tests' names, a line each, ends in the code.
func hasTest(tests, code string) bool {
	return regexp.MustCompile(`(?m)_` + code + `(_|$)`).MatchString(tests)
}

// testFunctions returns the names of all tests and fuzz targets.
func testFunctions(t *testing.T) []string {
	var names []string
	for _, f := range sources(t) {
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if ok && f.isTest() && fn.Recv == nil && (strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz")) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}
