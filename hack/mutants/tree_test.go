// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestMutants_EachApplies shows that each mutant of the repository applies, and that its
// tests exist.
func TestMutants_EachApplies(t *testing.T) {
	mutants, err := readAll(".", nil)
	if err != nil {
		t.Fatal(err)
	}
	repository, err := load("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := applicable(repository, mutants); err != nil {
		t.Error(err)
	}
}

const counter = `package counter

// Add adds.
func (c *Counter[K]) Add(n int) {
	if c.closed || n < 0 { // nothing to add
		return
	}
	c.sum += n
	c.log("added", n)
}
`

// plant returns a tree of the files, given as alternating paths and texts.
func plant(t *testing.T, files ...string) *tree {
	t.Helper()
	out := &tree{decls: map[string][]decl{}, tests: map[string][]string{}}
	for i := 0; i < len(files); i += 2 {
		if err := out.add(files[i], []byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestPlace_MovedCodeIsFound(t *testing.T) {
	m := mutant{in: "(*Counter).Add", old: "c.closed || n < 0", new: "n < 0"}
	want := strings.Replace(counter, "c.closed || n < 0", "n < 0", 1)
	for name, path := range map[string]string{
		"as written":    "counter/counter.go",
		"other file":    "counter/add.go",
		"other package": "internal/sums/counter.go",
	} {
		got, err := plant(t, path, counter, "other/other.go", "package other\nfunc Add(n int) {}\n").place(m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.path != path || string(got.to) != want || string(got.from) != counter {
			t.Errorf("%s: got %s:\n%s\nwant %s:\n%s", name, got.path, got.to, path, want)
		}
	}
}

func TestPlace_FormattingDoesNotMatter(t *testing.T) {
	in := "package x\nfunc f() {\n\tg(1, // one\n\t\t2,\n\t)\n\th()\n}\n"
	got, err := plant(t, "x/x.go", in).place(mutant{in: "f", old: "g( 1,\n2 ); h()", new: "h()"})
	if want := "package x\nfunc f() {\n\th()\n}\n"; err != nil || string(got.to) != want {
		t.Errorf("got %q, %v; want %q", got.to, err, want)
	}
}

func TestPlace_RemovedElementTakesItsComma(t *testing.T) {
	in := "package x\nvar t = []int{\n\t1, 2,\n\t3,\n}\n"
	got, err := plant(t, "x/x.go", in).place(mutant{in: "t", old: "2"})
	if want := "package x\nvar t = []int{\n\t1, \n\t3,\n}\n"; err != nil || string(got.to) != want {
		t.Errorf("got %q, %v; want %q", got.to, err, want)
	}
}

func TestPlace_Refuses(t *testing.T) {
	for name, c := range map[string]struct {
		m    mutant
		text string // the body of f in package a
		want string
	}{
		"unknown function":   {mutant{in: "missing", old: "x", new: "y"}, "x()", "nothing is declared as missing"},
		"unknown fragment":   {mutant{in: "f", old: "y()", new: "z()"}, "x()", "f, declared in a/a.go, does not contain\ny()"},
		"ambiguous fragment": {mutant{in: "f", old: "x()", new: "y()"}, "x()\nx()", "f contains this 2 times (a/a.go:4:1, a/a.go:5:1)"},
		"two packages":       {mutant{in: "g", old: "x()", new: "y()"}, "", "g contains this 2 times (b/b.go:2:12, c/c.go:2:12)"},
		"other package":      {mutant{in: "b.f", old: "x()", new: "y()"}, "x()", "nothing is declared as b.f"},
		"part of a node":     {mutant{in: "f", old: "a + b", new: "a"}, "x(a + b*c)", "does not contain\na + b"},
		"parts of two lists": {mutant{in: "f", old: "b = c", new: "b = 1"}, "a, b = c, d", "does not contain\nb = c"},
		"nothing changed":    {mutant{in: "f", old: "x(1)", new: "x( 1, ) // one"}, "x(1)", "changes nothing"},
		"does not parse":     {mutant{in: "f", old: "x()", new: "x("}, "x()", "does not parse"},
		"in a comment":       {mutant{in: "f", old: "x()", new: "y()"}, "// x()", "does not contain"},
	} {
		files := []string{
			"a/a.go", "package a\n\nfunc f() {\n" + c.text + "\n}\n",
			"b/b.go", "package b\nfunc g() { x() }\n",
			"c/c.go", "package c\nfunc g() { x() }\n",
		}
		if _, err := plant(t, files...).place(c.m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}

func TestPlace_NamesOfDeclarations(t *testing.T) {
	files := []string{
		"a/a.go", "package a\nconst limit = 3\nvar names = []string{\"x\"}\ntype pair struct{ a, b int }\nfunc (p pair) sum() int { return p.a }\n",
		"a/sub/a.go", "package sub\nconst limit = 4\n",
	}
	for in, c := range map[string]struct{ path, old string }{
		"limit":       {"a/a.go", "limit = 3"},
		"sub.limit":   {"a/sub/a.go", "4"},
		"a/sub.limit": {"a/sub/a.go", "4"},
		"names":       {"a/a.go", `"x"`},
		"pair":        {"a/a.go", "a, b int"},
		"pair.sum":    {"a/a.go", "p.a"},
		"pair[T].sum": {"a/a.go", "p.a"},
		"a.pair.sum":  {"a/a.go", "p.a"},
	} {
		got, err := plant(t, files...).place(mutant{in: in, old: c.old, new: "b"})
		if err != nil || got.path != c.path {
			t.Errorf("%s: got %q, %v; want %q", in, got.path, err, c.path)
		}
	}
}

func TestMutant_TestsAreFoundByName(t *testing.T) {
	where := plant(t,
		"a/a_test.go", "package a\nfunc TestA_W1(t *testing.T) {}\nfunc TestA_W10(t *testing.T) {}\n",
		"b_test.go", "package b\nfunc FuzzB_W1(f *testing.F) {}\n",
	)
	for test, want := range map[string]string{
		"TestA_W1":                      "test -count=1 -run=^(?:TestA_W1)$ ./a",
		"TestA_W1|FuzzB_W1 -timeout=5s": "test -count=1 -run=^(?:TestA_W1|FuzzB_W1)$ . ./a -timeout=5s",
		"TestA":                         "",
	} {
		m, err := read("why: x\ntest: " + test + "\nin: f\n\n- x\n")
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.command(where)
		if strings.Join(got, " ") != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v; want %q", test, got, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	m, err := read("why: it counts twice\ntest: TestX\nin: f\n\n  a()\n- if b {\n- \tc()\n- }\n+ d()\n\n  e()\n")
	if err != nil {
		t.Fatal(err)
	}
	if wantOld, wantNew := "a()\nif b {\n\tc()\n}\n\ne()", "a()\nd()\n\ne()"; m.old != wantOld || m.new != wantNew {
		t.Errorf("got %q and %q, want %q and %q", m.old, m.new, wantOld, wantNew)
	}
	for name, text := range map[string]string{
		"no header":       "- a\n+ b\n",
		"no test":         "why: x\nin: f\n\n- a\n",
		"unknown line":    "why: x\ntest: TestX\nin: f\npackage: y\n\n- a\n",
		"not a change":    "why: x\ntest: TestX\nin: f\n\na\n",
		"nothing to find": "why: x\ntest: TestX\nin: f\n\n+ a\n",
		"bad expression":  "why: x\ntest: Test(\nin: f\n\n- a\n",
	} {
		if _, err := read(text); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
