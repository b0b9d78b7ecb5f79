// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package models

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// typeTable says how the built-in types are merged. client-go has the same as YAML, which
// takes a new process fifty times as long to parse. A type is a line with its name and
// structure, and a line for each field with its name, its type, and its default in JSON:
//
//	string, numeric, boolean, untyped   a scalar
//	core.v1.Pod                         a type, named without its beginning if that is io.k8s.api.
//	core.v1.Pod@atomic                  the same, merged otherwise than it says
//	[]string                            a list that is replaced as a whole
//	[+]string                           a set
//	[a,b]core.v1.Pod                    a list of items that are told apart by these fields
//	{}string, {atomic}string            a map, merged so
//	struct, struct@atomic               fields, merged so; they follow
//	untyped|[](string|numeric)          any of these
//
// A line with "union" has its discriminator, or -, and the value for each field.
//
//go:embed schema_table.txt
var typeTable string

// BuiltinParser returns the parser of the built-in types. It must not be modified.
var BuiltinParser = sync.OnceValue(func() *typed.Parser {
	p := &typed.Parser{}
	p.Schema.Types = readTypes(typeTable)
	return p
})

func readTypes(table string) (types []smd.TypeDef) {
	r := typeReader{names: map[string]*string{}}
	var fields *smd.Map
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, " "); ok {
			r.member(fields, text)
			continue
		}
		name, what, _ := strings.Cut(line, " ")
		t := smd.TypeDef{Name: *r.name(name), Atom: r.atom(what)}
		types, fields = append(types, t), t.Map
	}
	return types
}

// typeReader parses lines of the type table. It interns names.
type typeReader struct{ names map[string]*string }

func (r typeReader) name(short string) *string {
	full := r.names[short]
	if full == nil {
		whole := short
		if !strings.HasPrefix(short, "io.k8s.") && !strings.HasPrefix(short, "__") {
			whole = modelPrefix + short
		}
		full = &whole
		r.names[short] = full
	}
	return full
}

// member adds a field or a union to a type.
func (r typeReader) member(to *smd.Map, text string) {
	words := strings.SplitN(text, " ", 3)
	if words[0] == "union" {
		to.Unions = append(to.Unions, unionOf(words[1], words[2]))
		return
	}
	field := smd.StructField{Name: words[0], Type: r.ref(words[1])}
	if len(words) == 3 {
		field.Default = defaultOf(words[2])
	}
	to.Fields = append(to.Fields, field)
}

func unionOf(discriminator, values string) (u smd.Union) {
	if discriminator != "-" {
		u.Discriminator = &discriminator
	}
	for _, pair := range strings.Fields(values) {
		field, value, _ := strings.Cut(pair, "=")
		u.Fields = append(u.Fields, smd.UnionField{FieldName: field, DiscriminatorValue: value})
	}
	return u
}

// defaultOf returns a value in the form of a YAML decoder.
func defaultOf(text string) any {
	var value any
	_ = json.Unmarshal([]byte(text), &value) // the tests decode all of them
	return asYAML(value)
}

func asYAML(value any) any {
	switch value := value.(type) {
	case float64:
		return int(value)
	case map[string]any:
		out := make(map[any]any, len(value))
		for key, v := range value {
			out[key] = asYAML(v)
		}
		return out
	}
	return value
}

func (r typeReader) ref(what string) smd.TypeRef {
	what = strings.TrimSuffix(strings.TrimPrefix(what, "("), ")")
	if strings.ContainsAny(what, "|[{") || scalarOf(what) != nil {
		return smd.TypeRef{Inlined: r.atom(what)}
	}
	name, relation, _ := strings.Cut(what, "@")
	ref := smd.TypeRef{NamedType: r.name(name)}
	if relation != "" {
		ref.ElementRelationship = new(smd.ElementRelationship(relation))
	}
	return ref
}

// cutAlternative cuts at the first | outside of parentheses.
func cutAlternative(what string) (first, rest string) {
	depth := 0
	for i, c := range what {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			return what[:i], what[i+1:]
		}
	}
	return what, ""
}

func scalarOf(what string) *smd.Scalar {
	switch s := smd.Scalar(what); s {
	case smd.String, smd.Numeric, smd.Boolean, smd.Untyped:
		return &s
	}
	return nil
}

func (r typeReader) atom(what string) (a smd.Atom) {
	for part := ""; what != ""; {
		part, what = cutAlternative(what)
		if scalar := scalarOf(part); scalar != nil {
			a.Scalar = scalar
			continue
		}
		if relation, ok := strings.CutPrefix(part, "struct"); ok {
			a.Map = &smd.Map{ElementRelationship: smd.ElementRelationship(strings.TrimPrefix(relation, "@"))}
			continue
		}
		head, element, _ := strings.Cut(part[1:], "]")
		if part[0] == '{' {
			head, element, _ = strings.Cut(part[1:], "}")
			a.Map = &smd.Map{ElementType: r.ref(element), ElementRelationship: smd.ElementRelationship(head)}
			continue
		}
		a.List = &smd.List{ElementType: r.ref(element), ElementRelationship: smd.Associative}
		switch head {
		case "":
			a.List.ElementRelationship = smd.Atomic
		case "+":
		default:
			a.List.Keys = strings.Split(head, ",")
		}
	}
	return a
}
