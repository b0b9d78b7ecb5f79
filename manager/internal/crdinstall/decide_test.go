// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdinstall_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/manager/internal/crdinstall"
)

// server is what an API server has.
type server struct{ crd map[string]any }

// start is a program that wants a definition. It returns what it has done, or its error.
func (s *server) start(t *testing.T, want map[string]any) string {
	t.Helper()
	was, wanted := text(t, s.crd), text(t, want)
	d, err := crdinstall.Decide(s.crd, want)
	if text(t, s.crd) != was || text(t, want) != wanted {
		t.Error("Decide has changed its arguments")
	}
	switch {
	case err != nil:
		if _, ok := errors.AsType[*crdinstall.NarrowingError](err); !ok || d.Object != nil {
			t.Errorf("got %T and %v to write, want a *NarrowingError and nothing", err, d.Object)
		}
		return err.Error()
	case d.Older:
		return "older"
	case d.Action == crdinstall.Keep:
		return "keep"
	}
	s.crd = copied(t, d.Object)
	return map[crdinstall.Action]string{crdinstall.Create: "create", crdinstall.Update: "update"}[d.Action]
}

func text(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func copied(t *testing.T, v map[string]any) map[string]any { return parse(t, text(t, v)) }

// In the order of a life: each program meets what the ones before it have left.
func TestDecide_AnOlderProgramLeavesTheNewer_O8(t *testing.T) {
	first := widget(t, `{type: object, properties: {a: {type: string}}}`)
	second := widget(t, `{type: object, properties: {a: {type: string}, b: {type: string}}}`)
	worded := widget(t, `{type: object, properties: {a: {type: string}, b: {type: string, description: said better}}}`)
	narrow := widget(t, `{type: object, properties: {b: {type: string}}}`)
	s := &server{}
	for i, step := range []struct {
		want   map[string]any
		does   string
		reason string
	}{
		{first, "create", ""},
		{first, "keep", "a second replica"},
		{second, "update", "the upgrade"},
		{first, "older", "a replica of the old version restarts"},
		{second, "keep", ""},
		{narrow, "an update would narrow it, so nothing was written:\n\tv1: .spec.a: the property is removed: the server drops its values", "a property is gone"},
		{worded, "update", "another description"},
		{second, "older", "the old description does not come back"},
		{first, "older", "a rollback over two versions"},
		{worded, "keep", ""},
	} {
		if got := s.start(t, step.want); got != step.does {
			t.Fatalf("step %d (%s): the program does %q, want %q", i, step.reason, got, step.does)
		}
	}
}

func TestDecide_WhatOthersInstalled_O8(t *testing.T) {
	narrow := widget(t, `{type: object, properties: {a: {type: string}}}`)
	wide := widget(t, `{type: object, properties: {a: {type: string}, b: {type: string}}}`)
	put := func(s *server, spec map[string]any) { s.crd["spec"] = copied(t, spec)["spec"] }

	s := &server{crd: copied(t, narrow)}
	if got := s.start(t, narrow); got != "update" {
		t.Fatalf("the same definition by another hand: %q, want an update that notes the history", got)
	}
	if got := s.start(t, narrow); got != "keep" {
		t.Errorf("then: %q, want keep", got)
	}
	put(s, wide)
	if got := s.start(t, narrow); got != "older" {
		t.Errorf("kubectl has installed a wider one: %q, want older", got)
	}
	if got := s.start(t, wide); got != "update" {
		t.Errorf("the program of the wider one: %q, want an update that notes the history", got)
	}
	put(s, narrow)
	if got := s.start(t, wide); got != "update" {
		t.Errorf("kubectl has put the narrow one back: %q, want update", got)
	}

	s = &server{}
	s.start(t, wide)
	put(s, narrow)
	if got := s.start(t, narrow); got != "update" {
		t.Errorf("kubectl has narrowed it, and the program of that starts: %q, want an update that notes the history", got)
	}
	if got := s.start(t, wide); got != "older" {
		t.Errorf("a replica of the program before that restarts: %q, want older", got)
	}

	s = &server{crd: copied(t, wide)}
	if got := s.start(t, narrow); !strings.Contains(got, ".spec.b: the property is removed") {
		t.Errorf("a program that never installed its own meets a wider one: %q, want the narrowing", got)
	}
}

// What the server adds, and what webhooks and users do, is no difference.
func TestDecide_TheServersDefaultsAreNoChange_O8(t *testing.T) {
	want := widget(t, `{type: object, properties: {n: {type: integer, minimum: 1}}}`)
	want["spec"].(map[string]any)["conversion"] = parse(t, `{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: b}}}}`)
	want["metadata"].(map[string]any)["labels"] = map[string]any{"app": "a"}
	s := &server{}
	s.start(t, want)
	spec := s.crd["spec"].(map[string]any)
	spec["names"].(map[string]any)["singular"] = "widget"
	spec["names"].(map[string]any)["listKind"] = "WidgetList"
	config := spec["conversion"].(map[string]any)["webhook"].(map[string]any)["clientConfig"].(map[string]any)
	config["caBundle"] = "QQ=="
	config["service"].(map[string]any)["port"] = int64(443)
	s.crd["status"] = parse(t, `{storedVersions: [v1]}`)
	meta := s.crd["metadata"].(map[string]any)
	meta["resourceVersion"], meta["labels"].(map[string]any)["more"] = "5", "b"
	if got := s.start(t, want); got != "keep" {
		t.Errorf("the program does %q, want keep", got)
	}
	wider := copied(t, want)
	set(t, wider, parse(t, `{type: object, properties: {spec: {type: object, properties: {n: {type: integer}}}}}`))
	if got := s.start(t, wider); got != "update" {
		t.Fatalf("the program does %q, want update", got)
	}
	config = s.crd["spec"].(map[string]any)["conversion"].(map[string]any)["webhook"].(map[string]any)["clientConfig"].(map[string]any)
	meta = s.crd["metadata"].(map[string]any)
	if config["caBundle"] != "QQ==" || meta["resourceVersion"] != "5" || meta["labels"].(map[string]any)["more"] != "b" {
		t.Errorf("the update has lost the caBundle, the version that was read, or a label: %s", text(t, s.crd))
	}
}

// A program that differs from the one before it in labels or annotations alone is a newer one.
func TestDecide_LabelsAloneAreAChange_O8(t *testing.T) {
	before := widget(t, `{type: object}`)
	before["metadata"].(map[string]any)["labels"] = map[string]any{"version": "1"}
	after := copied(t, before)
	after["metadata"].(map[string]any)["labels"] = map[string]any{"version": "2"}
	s := &server{}
	s.start(t, before)
	for _, c := range []struct {
		program string
		wants   map[string]any
		want    string
	}{{"the newer", after, "update"}, {"the newer again", after, "keep"}, {"the one before", before, "older"}} {
		if got := s.start(t, c.wants); got != c.want {
			t.Errorf("%s program does %q, want %q", c.program, got, c.want)
		}
		if got := s.crd["metadata"].(map[string]any)["labels"].(map[string]any)["version"]; got != "2" {
			t.Errorf("%s program: the label is %v, want 2", c.program, got)
		}
	}
}

// A build with other labels is not newer than the spec that it has.
func TestDecide_LabelsMakeAnOlderProgramNoNewer_O8(t *testing.T) {
	labeled := func(schema, version string) map[string]any {
		crd := widget(t, schema)
		crd["metadata"].(map[string]any)["labels"] = map[string]any{"version": version}
		return crd
	}
	const a = `{type: object, properties: {a: {type: string}}}`
	for name, b := range map[string]string{
		"it lacks a property": `{type: object, properties: {a: {type: string}, b: {type: string}}}`,
		"in words":            `{type: object, properties: {a: {type: string, description: said better}}}`,
	} {
		for first, program := range map[string]map[string]any{"without labels": widget(t, a), "with labels": labeled(a, "1.4.0")} {
			s := &server{}
			s.start(t, program)
			if got := s.start(t, labeled(b, "2.0")); got != "update" {
				t.Fatalf("%s, %s: the newer program does %q", name, first, got)
			}
			for _, version := range []string{"1.4.1", "1.4.2"} {
				if got := s.start(t, labeled(a, version)); got != "older" {
					t.Errorf("%s, %s: a patch of the older one does %q, want older", name, first, got)
				}
			}
			if got := s.start(t, labeled(b, "2.0")); got != "keep" {
				t.Errorf("%s, %s: the newer one then does %q, want keep", name, first, got)
			}
		}
	}
}

// The same where the newer spec is narrower, as someone has put it there by hand.
func TestDecide_LabelsMakeAWiderOlderProgramNoNewer_O8(t *testing.T) {
	wide := widget(t, `{type: object, properties: {a: {type: string}, b: {type: string}}}`)
	narrow := widget(t, `{type: object, properties: {a: {type: string}}}`)
	s := &server{}
	s.start(t, wide)
	s.crd["spec"] = copied(t, narrow)["spec"]
	s.start(t, narrow) // notes itself in the history
	patch := copied(t, wide)
	patch["metadata"].(map[string]any)["labels"] = map[string]any{"version": "1.4.1"}
	if got := s.start(t, patch); got != "older" {
		t.Errorf("a patch of the wide one does %q, want older", got)
	}
}

// A label may be empty.
func TestDecide_EmptyLabelsAreInstalled_O8(t *testing.T) {
	want := widget(t, `{type: object}`)
	s := &server{}
	s.start(t, want)
	want = copied(t, want)
	want["metadata"].(map[string]any)["labels"] = map[string]any{"example.dev/watched": ""}
	for _, does := range []string{"update", "keep"} {
		if got := s.start(t, want); got != does {
			t.Errorf("the program does %q, want %q", got, does)
		}
	}
}

func TestDecide_TheHistoryIsBounded(t *testing.T) {
	s := &server{}
	for n := range 100 {
		want := widget(t, `{type: object}`)
		set(t, want, map[string]any{"type": "object", "description": strings.Repeat("x", n)})
		if got := s.start(t, want); got != "update" && got != "create" {
			t.Fatalf("program %d does %q", n, got)
		}
	}
	history := s.crd["metadata"].(map[string]any)["annotations"].(map[string]any)[crdinstall.Annotation].(string)
	if got := len(strings.Split(history, ",")); got != 64 {
		t.Errorf("the annotation has %d hashes, want 64", got)
	}
}

// Malformed definitions are the server's to refuse.
func FuzzDecide(f *testing.F) {
	f.Add(`{"spec":{"versions":[{"name":"v1"}]}}`, `{"metadata":{},"spec":{"versions":[]}}`)
	f.Add(`{"metadata":{"annotations":{"flyball.dev/crd-history":",,x"}},"spec":3}`, `{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"a":null},"enum":3}}}]}}`)
	f.Fuzz(func(t *testing.T, have, want string) {
		var a, b map[string]any
		if json.Unmarshal([]byte(have), &a) != nil || json.Unmarshal([]byte(want), &b) != nil || a == nil || b == nil {
			return
		}
		d, err := crdinstall.Decide(a, b)
		if err == nil && d.Object != nil {
			if again, err := crdinstall.Decide(d.Object, b); err != nil || again.Action != crdinstall.Keep {
				t.Errorf("after its own write a program does %v, %v, want nothing", again, err)
			}
		}
		if len(crdinstall.Narrowings(a, a)) > 0 && reflect.DeepEqual(a, b) {
			t.Log("a definition that misses a stored version narrows itself")
		}
	})
}

// The name of a property is not a keyword: the server completes the schema of one that is
// called default as that of any other.
func TestDecide_NamesOfPropertiesAreNoKeywords_O8(t *testing.T) {
	for _, name := range []string{"default", "enum", "example", "properties", "status"} {
		program := widget(t, `{type: object, properties: {`+name+`: {type: object, description: "", nullable: false, properties: {`+name+`: {type: string, required: []}}}}}`)
		s := &server{}
		s.start(t, program)
		s.crd["spec"] = copied(t, widget(t, `{type: object, properties: {`+name+`: {type: object, properties: {`+name+`: {type: string}}}}}`))["spec"]
		if got := s.start(t, program); got != "keep" {
			t.Errorf("a property called %s, and the server has left out what is empty: the program does %q at its second start, want keep", name, got)
		}
	}
}
