// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
)

const (
	// CommittedSeeds is the number of programs whose transcripts are under testdata/golden.
	CommittedSeeds = 12
	// programSteps is the number of random steps of a program.
	programSteps = 40
)

// Programs returns n cases, generated from the seeds 0 to n-1: writes, patches, applies and
// deletes of ConfigMaps, Deployments and a custom kind, with lists and watches between
// them. fsys is that of Load.
func Programs(fsys fs.FS, n int) ([]Case, error) {
	beginnings, err := fs.ReadFile(fsys, "shared.txt")
	if err != nil {
		return nil, err
	}
	known, err := Parse("shared", string(beginnings))
	if err != nil {
		return nil, err
	}
	var cases []Case
	for seed := range n {
		g := generator{rand.New(rand.NewPCG(uint64(seed), 0))}
		of, err := Parse("programs", g.program(seed))
		if err != nil {
			return nil, err
		}
		cases = append(cases, of...)
	}
	return begin(cases, known)
}

// generator generates the text of a program.
type generator struct{ *rand.Rand }

func (g generator) pick(of ...string) string { return of[g.IntN(len(of))] }

// maybe returns text in one of n calls, otherwise nothing.
func (g generator) maybe(n int, text string) string {
	if g.IntN(n) > 0 {
		return ""
	}
	return text
}

func (g generator) program(seed int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "-- seed-%d --\nuse widget\n\n", seed)
	watches := 0
	for range programSteps {
		kind := kinds[g.IntN(len(kinds))]
		if g.IntN(12) == 0 && watches < 4 {
			watches++
			fmt.Fprintf(&out, "watch w%d %s%s\n\n", watches, kind.path, g.maybe(2, "?labelSelector=color%3Dred"))
			fmt.Fprintf(&out, "set kind%d %s\n\n", watches, kind.path)
			continue
		}
		out.WriteString(g.step(kind) + "\n\n")
	}
	for _, kind := range kinds {
		fmt.Fprintf(&out, "POST %s\n%s\n\n", kind.path, kind.body(g, "marker", `,"labels":{"color":"red"}`))
	}
	for i := range watches {
		fmt.Fprintf(&out, "await w%d marker\n\n", i+1)
	}
	return out.String()
}

// step returns one request for one object of a kind, or for all of them.
func (g generator) step(kind programKind) string {
	name := g.pick("a", "b", "c")
	at := kind.path + "/" + name
	switch g.IntN(14) {
	case 0, 1, 2:
		return fmt.Sprintf("POST %s%s\n%s", kind.path, g.query(), kind.body(g, name, g.metadata()))
	case 3:
		return fmt.Sprintf("PUT %s%s\n%s", at, g.query(), kind.body(g, name, g.metadata()))
	case 4:
		return fmt.Sprintf("GET %s\n\nsave rv .metadata.resourceVersion 1\n\nPUT %s%s\n%s", at, at, g.query(), kind.body(g, name, `,"resourceVersion":"$rv"`+g.metadata()))
	case 5, 6:
		return fmt.Sprintf("PATCH %s%s\n@Content-Type: application/merge-patch+json\n%s", at, g.query(), g.mergePatch(kind))
	case 7:
		return fmt.Sprintf("PATCH %s%s\n@Content-Type: application/json-patch+json\n%s", at, g.query(), g.jsonPatch())
	case 8, 9:
		query := "?fieldManager=" + g.pick("one", "two") + g.maybe(3, "&force=true") + g.maybe(6, "&dryRun=All")
		return fmt.Sprintf("PATCH %s%s\n@Content-Type: application/apply-patch+yaml\n%s", at, query, kind.body(g, name, g.maybe(2, `,"labels":{"color":"red"}`)))
	case 10:
		return fmt.Sprintf("PATCH %s/status\n@Content-Type: application/merge-patch+json\n{\"status\":{\"replicas\":%d},\"spec\":{\"replicas\":1}}", at, g.IntN(3))
	case 11:
		options := g.pick("", "", "?propagationPolicy=Foreground", "?propagationPolicy=Orphan", "?dryRun=All", "?propagationPolicy=Background")
		return "DELETE " + at + options
	case 12:
		return "PATCH " + at + "\n@Content-Type: application/merge-patch+json\n" + `{"metadata":{"finalizers":null}}`
	}
	return "GET " + g.pick(at, kind.path, kind.path+"?labelSelector=color%3Dred", kind.path+"?limit=2", kind.path+"?fieldSelector=metadata.name%3D"+name)
}

func (g generator) query() string {
	return g.pick("", "", "", "?fieldManager=one", "?fieldManager=two", "?dryRun=All", "?fieldValidation=Strict")
}

func (g generator) metadata() string {
	return g.maybe(2, `,"labels":{"color":"`+g.pick("red", "blue")+`"}`) + g.maybe(5, `,"finalizers":["example.com/x"]`) +
		g.maybe(5, `,"annotations":{"n":"`+g.pick("1", "2")+`"}`)
}

func (g generator) mergePatch(kind programKind) string {
	return g.pick(`{"metadata":{"labels":{"color":"red"}}}`, `{"metadata":{"labels":{"color":null}}}`,
		`{"metadata":{"annotations":{"n":"3"}}}`, `{"metadata":{"finalizers":["example.com/x"]}}`,
		`{"nonsense":1}`, kind.patch(g), kind.patch(g), kind.patch(g))
}

func (g generator) jsonPatch() string {
	return g.pick(`[{"op":"add","path":"/metadata/labels","value":{"color":"blue"}}]`, `[{"op":"remove","path":"/metadata/labels/color"}]`,
		`[{"op":"test","path":"/metadata/name","value":"a"},{"op":"add","path":"/metadata/annotations","value":{"p":"q"}}]`,
		`[{"op":"replace","path":"/spec/replicas","value":3}]`)
}
