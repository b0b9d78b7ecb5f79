// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/share"
)

// subject is a type, its plan, and a table that outlives one text.
type subject struct {
	plan  *Plan
	table *share.Table
}

func subjectOf(t testing.TB, typ reflect.Type, paths ...string) subject {
	t.Helper()
	var sel *fields.Set
	if len(paths) > 0 {
		var err error
		if sel, err = fields.Parse(paths...); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Compile(typ, sel, true)
	if err != nil {
		t.Fatal(err)
	}
	return subject{p, share.NewTable()}
}

func subjects(t testing.TB) []subject {
	return []subject{
		subjectOf(t, reflect.TypeFor[odd]()), subjectOf(t, reflect.TypeFor[corev1.Pod]()),
		subjectOf(t, reflect.TypeFor[fleet]()), subjectOf(t, reflect.TypeFor[unstructured.Unstructured]()),
	}
}

// agrees fails the test if the plan and the reference disagree about text: if
// not both refuse it, or it becomes different objects.
func (s subject) agrees(t *testing.T, text string) {
	t.Helper()
	want := reflect.New(s.plan.typ)
	refused := reference([]byte(text), want.Interface())
	fields.Prune(want.Interface(), s.plan.sel)
	options := []Options{{}, {Table: s.table, StringsOnly: true}, {Table: s.table}, {Table: s.table}, {Table: s.table}}
	for n, opts := range options {
		raw, got := []byte(text), reflect.New(s.plan.typ)
		_, ok := s.plan.decode(raw, got, opts)
		copy(raw, bytes.Repeat([]byte("x"), len(raw)))
		switch {
		case ok && refused != nil && s.plan.sel != nil: // perhaps for what is left out
		case ok && refused != nil:
			t.Fatalf("%s: options %d: the plan decodes %.300q, and the reference refuses it: %v", s.plan.typ, n, text, refused)
		case ok && !reflect.DeepEqual(got.Interface(), want.Interface()):
			t.Fatalf("%s: options %d: %.300q becomes\n%s, want\n%s", s.plan.typ, n, text, show(got), show(want))
		case !ok && refused == nil && !mayBeLeft(text):
			t.Fatalf("%s: options %d: the plan leaves %.300q to the reference", s.plan.typ, n, text)
		}
	}
}

// mayBeLeft reports whether the plan may leave text to the reference: it has a
// key twice, or lists in lists that would be counted too often.
func mayBeLeft(text string) bool {
	return hasTwins([]byte(text)) || strings.Count(text, "[") > farthest
}

func show(v reflect.Value) string {
	text, err := json.Marshal(v.Interface())
	return fmt.Sprintf("%s %+v %v", text, v.Elem().Interface(), err)
}

// hasTwins reports whether an object in text has a key twice.
func hasTwins(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	found := false
	var read func() bool
	read = func() bool {
		token, err := d.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'):
			keys := map[any]bool{}
			for d.More() {
				key, err := d.Token()
				if err != nil {
					return false
				}
				found = found || keys[key]
				keys[key] = true
				if !read() {
					return false
				}
			}
			_, err = d.Token()
		case json.Delim('['):
			for d.More() {
				if !read() {
					return false
				}
			}
			_, err = d.Token()
		}
		return err == nil
	}
	read()
	return found
}

// values are tried as the value of each field.
var values = []string{
	`null`, `true`, `false`, `0`, `-0`, `1`, `-1`, `127`, `128`, `-128`, `-129`, `255`, `256`, `32767`, `32768`, `65535`, `65536`,
	`2147483647`, `2147483648`, `-2147483648`, `-2147483649`, `4294967295`, `4294967296`, `9223372036854775807`,
	`9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`, `18446744073709551615`, `18446744073709551616`,
	`999999999999999999`, `1000000000000000000`, `100000000000000000000`,
	`1.0`, `1.5`, `1e3`, `1E3`, `1e+3`, `1e-3`, `-1.25e2`, `1e39`, `3.4028235e38`, `3.4028236e38`, `1e308`, `1e309`, `-1e400`, `1e-400`, `0.1`, `0e0`,
	`01`, `-`, `+1`, `.5`, `1.`, `1e`, `1e+`, `0x1`, `NaN`, `Infinity`, `tru`, `truee`, `nul`, `nulll`, `True`,
	`""`, `"a"`, `"no"`, `"null"`, `"true"`, `"1"`, `"-1"`, `"1.5"`, `"01"`, `"1e3"`, `"\"a\""`, `"\"1\""`, `"YWJj"`, `"YWI="`, `"YQ"`, `"*"`, `"Y\nWJj"`,
	`"\u0041"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\ud83d\u0041"`, `"\ud83dx"`, `"\ud83d\ud83d\ude00"`, `"\u00e9é€😀"`, `"\b\f\n\r\t\/\\\""`,
	`"\u12"`, `"\u12g4"`, `"\x"`, `"\'"`, `"` + "\n" + `"`, `"` + "\x00" + `"`, `"` + "\x7f" + `"`, `"`, `"a`, `"\"`, `"\`,
	"\"\xff\"", "\"a\xc3\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xc0\x80 and longer than eight bytes\"", "\"ordinary\xe2\x82\"",
	`"2024-02-29T12:34:56Z"`, `"2023-02-29T12:34:56Z"`, `"2024-12-31T23:59:59Z"`, `"2024-12-31T23:59:60Z"`, `"2024-13-01T00:00:00Z"`, `"2024-00-01T00:00:00Z"`,
	`"2024-01-00T00:00:00Z"`, `"2024-01-32T00:00:00Z"`, `"2024-01-01T24:00:00Z"`, `"2024-01-01T00:60:00Z"`, `"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`,
	`"2024-01-01T00:00:00+02:00"`, `"2024-01-01T00:00:00.5Z"`, `"2024-01-01T00:00:00.123456Z"`, `"2024-01-01T00:00:00.1234567Z"`, `"2024-01-01T00:00:00,123456Z"`,
	`"2024-01-01t00:00:00z"`, `"2024-1-01T00:00:00Z"`, `"2024-01-01T00:00:00"`, `"2024-04-31T00:00:00Z"`, `"0001-01-01T00:00:00Z"`, `"2024-01-01T0:00:00Z"`, `"2024-01-01T00:00:00.000000+01:00"`,
	`"1h30m"`, `"100m"`, `"1Gi"`, `" 1 "`, `"1.5e3"`, `"1000000000000000000000"`, `"0.0000000001"`, `"80%"`,
	`[]`, `[ ]`, `[null]`, `[1]`, `[1,2,3,4]`, `["a","b"]`, `["a",1]`, `[true,null]`, `[[]]`, `[["a"],[],null]`, `[{}]`, `[{"a":"x"},{"a":"y","b":1}]`, `[1,]`, `[,]`, `[,1]`, `[1 2]`, `[1`, `[`, `]`, `[}`, `[ }`, `{]`, `[1}`, `[{]`, `[{}}`, `["YWJj"]`,
	`["2024-02-29T12:34:56Z",null]`,
	`{}`, `{ }`, `{"a":null}`, `{"a":1}`, `{"a":"b"}`, `{"a":"b","c":"d"}`, `{"a":"b","a":"c"}`, `{"a":{"a":"x"}}`, `{"a":{"b":1},"a":{"a":"x"}}`, `{"A":"x"}`, `{"":""}`, `{"\u0061":"x"}`, `{"a\u0000":"x"}`,
	"{\"\xff\":\"x\"}", `{"1":"a","-5":"b"}`, `{"300":"x"}`, `{"x":true}`, `{"1":true}`, `{"a":[{"b":[]}]}`, `{"a" : "x" , "c" : { } }`, `{"a":"YWJj"}`, `{"cpu":"1","memory":"1Gi"}`, `{"cpu":1}`, `{"no":1}`,
	`{"a"}`, `{"b"}`, `{"b" 1}`, `{"b":}`, `{"a":}`, `{"a":1,}`, `{,}`, `{a:1}`, `{'a':1}`, `{"a":1 "b":2}`, `{"a":1`, `{"a"`, `{`, `}`, `{"a":1}}`, `{"a":{"c":{"d":[1,2.5,"x",null,true,{"e":{}}]}}}`,
	`{"Deepest":1,"Third":true,"behind":"x"}`, `{"Time":"2024-02-29T12:34:56Z"}`, `{"in valid":"x","\"x":"y","E":"z","F":"w"}`, `{"type":"Ready","status":"True","lastTransitionTime":null}`,
	``, ` `, "\ufeff1", `/**/1`, "1\x00",
}

func fieldNames(typ reflect.Type) (names []string) {
	if typ == treeType {
		return []string{"spec"}
	}
	for _, m := range membersOf(typ) {
		names = append(names, m.name)
	}
	return append(names, "unknown", "promoted", "Hidden", "hidden", "-", "Twice")
}

func TestPlan_EachValueInEachFieldAsTheReference_D1(t *testing.T) {
	for _, s := range subjects(t) {
		for _, name := range fieldNames(s.plan.typ) {
			for i, v := range values {
				if i%5 != 0 {
					s.agrees(t, `{"`+name+`":`+v+`}`)
					continue
				}
				s.agrees(t, " {\n\t\""+name+"\" : "+v+" ,\r\n\"kind\":\"K\"} ")
			}
		}
		for _, v := range values {
			s.agrees(t, v)
		}
	}
}

func TestPlan_HostileTextsAsTheReference_D1(t *testing.T) {
	deep := func(n int, open, shut string) string { return strings.Repeat(open, n) + strings.Repeat(shut, n) }
	texts := []string{
		`{"Any":` + deep(9_998, "[", "]") + `}`, `{"Any":` + deep(9_999, "[", "]") + `}`, `{"Any":` + deep(10_000, "[", "]") + `}`,
		`{"unknown":` + deep(9_999, "[", "]") + `}`, `{"unknown":` + deep(10_000, "[", "]") + `}`,
		deep(9_999, `{"Self":`, "}"), deep(9_999, `{"Recursive":[`, "]}"), `{"Lists":` + deep(10_001, "[", "]") + `}`,
		strings.Repeat(`{"Self":`, 10_000) + "{}" + strings.Repeat("}", 10_000), strings.Repeat(`{"Self":`, 9_999) + "{}" + strings.Repeat("}", 9_999),
		strings.Repeat(`{"Recursive":[`, 500) + "{}" + strings.Repeat("]}", 500),
		`{"Raw":` + deep(9_999, "[", "]") + `}`, `{"Raw":` + deep(10_000, "[", "]") + `}`, `{"Array":` + deep(9_999, "[", "]") + `}`,
		`{"Inners":[` + strings.Repeat(",", 100_000) + `]}`, `{"Inners":[` + strings.Repeat("{},", 5_000) + `{}]}`, `{"Inners":[` + strings.Repeat("{},", 5_000) + `]}`,
		`{"Map":{` + strings.Repeat(`"a":"b",`, 1000) + `"c":"d"}}`, `{"Text":"` + strings.Repeat(`\ud83d\ude00`, 10_000) + `"}`,
		"{\"Text\":\"" + strings.Repeat("\xff", 10_000) + "\"}",
		`{"Self":{"Text":"a"},"Self":{"I":1}}`, `{"Words":["a","b","c"],"Words":["d"]}`, `{"Inners":[{"a":"x"},{"a":"y"}],"Inners":[{}]}`,
		`{"metadata":{"name":"a"},"metadata":{"uid":"b"}}`, `{"Map":{"a":"1"},"Map":{"b":"2"}}`, `{"Any":{"a":1},"Any":{"b":2}}`, `{"Time":null,"Time":null}`,
		`{"Self":{},"Self":null}`, `{"Text":"a","\u0054ext":"b"}`, `{"Twice":"a","text":"b","TEXT":"c"}`,
		`{"behind":null}`, `{"behind":"x","Twice":"y","Word2":"z"}`,
	}
	for _, s := range subjects(t) {
		for _, text := range texts {
			s.agrees(t, text)
		}
	}
	odd := subjects(t)[0]
	for _, n := range []int{deepest - 2, deepest - 1, deepest} {
		text := strings.Repeat(`{"Self":`, n) + `{"Words":[]}` + strings.Repeat("}", n)
		_, ok := odd.plan.decode([]byte(text), reflect.New(odd.plan.typ), Options{})
		if err := reference([]byte(text), new(map[string]any)); ok && err != nil {
			t.Errorf("the plan decodes an empty list in %d objects, and the reference refuses it: %v", n+1, err)
		}
	}
}

// A plan of some fields makes what the reference does, without the others.
func TestPlan_SomeFieldsAsTheReferencePruned_D4(t *testing.T) {
	for _, s := range []subject{
		subjectOf(t, reflect.TypeFor[odd](), "Text", "Self.Text", "Inner.c", "Inners.d.a", "PInner.b", "behind", "Conditions.type", "metadata.annotations"),
		subjectOf(t, reflect.TypeFor[corev1.Pod](), "spec.nodeName", "spec.containers.image", "spec.volumes.emptyDir.medium"),
		subjectOf(t, reflect.TypeFor[corev1.Pod](), "metadata", "status"),
		subjectOf(t, reflect.TypeFor[fleet](), "spec.windows.from", "status"),
		subjectOf(t, reflect.TypeFor[unstructured.Unstructured](), "spec.a", "spec.c.d", "spec.containers.image", "status"),
	} {
		for _, name := range fieldNames(s.plan.typ) {
			for _, v := range values {
				s.agrees(t, `{"`+name+`":`+v+`}`)
			}
		}
		s.agrees(t, examplePod(t))
		s.agrees(t, exampleFleet)
		s.agrees(t, `{"spec":{"\u0061":1,"b":2,"c":{"d":[{"e":null}],"f":1}},"status":null,"\u0073tatus":{"a":[]}}`)
	}
}

// Two fields of one type keep what is selected of each, also names that are
// always kept of objects.
func TestPlan_FieldsOfOneTypeKeepTheirOwn_D4(t *testing.T) {
	s := subjectOf(t, reflect.TypeFor[corev1.Event](), "involvedObject.kind", "involvedObject.name", "related.apiVersion", "related.name")
	s.agrees(t, `{"involvedObject":{"kind":"Pod","apiVersion":"v1","name":"a"},"related":{"kind":"Node","apiVersion":"v2","name":"b"}}`)
	s = subjectOf(t, reflect.TypeFor[odd](), "Self.metadata.name", "Inners.a", "Recursive.metadata.uid", "PInner.d.a")
	s.agrees(t, `{"Self":{"metadata":{"name":"a","uid":"b"}},"Recursive":[{"metadata":{"name":"a","uid":"b"}}],"PInner":{"a":"x","d":[{"a":"y"}]},"Inners":[{"a":"z"}]}`)
}

// A key that was read before in another spelling is no reason to accept one that
// is not valid.
func TestPlan_KnownKeysAsTheReference_D1(t *testing.T) {
	s := subjectOf(t, treeType)
	for _, known := range []string{`a\\`, `b\\\\`, `c\"d`, `e\n`, `f\u0000`, `\u0067`, `\u00e9`} {
		name := string(unquote(nil, []byte(known)))
		for range 3 {
			s.agrees(t, `{"`+known+`":1}`)
		}
		s.agrees(t, `{"`+name+`":1}`)
		s.agrees(t, `{"spec":{"`+known+`":1,"`+name+`":2}}`)
		s.agrees(t, `{"spec":{"`+name+`":1}}`)
	}
}

// The branches of a plan are used up: later places keep managedFields of their
// own, which only the object's metadata is to lose.
func TestPlan_TreesBeyondTheBranchesAsTheReference_D1(t *testing.T) {
	p, err := Compile(treeType, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	read := func(text string) (got, want unstructured.Unstructured) {
		t.Helper()
		if _, ok := p.decode([]byte(text), reflect.ValueOf(&got), Options{}); !ok {
			t.Fatalf("the plan leaves %.100q to the reference", text)
		}
		if err := reference([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		dropManagedFields(&want)
		return got, want
	}
	for a := range mostKids / 2 {
		for b := 0; b < mostKids/2 && p.grove.made.Load() < mostBranches; b++ {
			read(fmt.Sprintf(`{"spec":{"%d":{"%d":{"a":1,"b":1}}}}`, a, b))
		}
	}
	got, want := read(`{"metadata":{"name":"a","managedFields":[],"other":{"managedFields":1}},"status":{"metadata":{"managedFields":[]}},"list":[{"metadata":{"managedFields":[]}}]}`)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %v, want %v", got, want)
	}
}

// All prefixes of an object are refused, and none is read beyond its end.
func TestPlan_PrefixesAsTheReference_D1(t *testing.T) {
	text := examplePod(t)
	for _, s := range subjects(t) {
		for n := range len(text) {
			s.agrees(t, text[:n])
		}
		s.agrees(t, text)
	}
}
