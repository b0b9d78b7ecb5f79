// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

var updateTypes = flag.Bool("update-types", false, "write schema_table.txt from the types of client-go")

// The table agrees with client-go. After an update of client-go,
//
//	go test ./simulate/internal/models -run BuiltinTypes -update-types
//
// regenerates it.
func TestServer_BuiltinTypesAreThoseOfClientGo_S9(t *testing.T) {
	typed, err := applyconfigurations.NewTypeConverter(Scheme()).ObjectToTyped(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}})
	if err != nil {
		t.Fatal(err)
	}
	want := typed.Schema().Types
	if *updateTypes {
		var table strings.Builder
		for _, def := range want {
			writeType(&table, def)
		}
		if err := os.WriteFile("schema_table.txt", []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		typeTable = table.String()
	}
	got := readTypes(typeTable)
	if len(got) != len(want) {
		t.Errorf("there are %d types, want %d; -update-types writes the table anew", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if text(got[i]) != text(want[i]) {
			t.Fatalf("got  %s\nwant %s\n-update-types writes the table anew", text(got[i]), text(want[i]))
		}
		if !reflect.DeepEqual(plainType(got[i]), plainType(want[i])) {
			t.Fatalf("%s is read as something else than client-go does", text(got[i]))
		}
	}
}

// plainType is a type without what is computed on first use.
func plainType(def smd.TypeDef) smd.TypeDef {
	if def.Map != nil {
		def.Map = &smd.Map{Fields: def.Map.Fields, Unions: def.Map.Unions, ElementType: def.Map.ElementType, ElementRelationship: def.Map.ElementRelationship}
	}
	return def
}

func text(def smd.TypeDef) string {
	var out strings.Builder
	writeType(&out, def)
	return out.String()
}

func writeType(out *strings.Builder, def smd.TypeDef) {
	fmt.Fprintf(out, "%s %s\n", strings.TrimPrefix(def.Name, modelPrefix), atomWord(def.Atom))
	if def.Map == nil {
		return
	}
	for _, field := range def.Map.Fields {
		fmt.Fprintf(out, " %s %s", field.Name, refWord(field.Type))
		if field.Default != nil {
			encoded, _ := json.Marshal(asJSON(field.Default))
			fmt.Fprintf(out, " %s", encoded)
		}
		out.WriteString("\n")
	}
	for _, u := range def.Map.Unions {
		discriminator := "-"
		if u.Discriminator != nil {
			discriminator = *u.Discriminator
		}
		fmt.Fprintf(out, " union %s", discriminator)
		for _, f := range u.Fields {
			fmt.Fprintf(out, " %s=%s", f.FieldName, f.DiscriminatorValue)
		}
		out.WriteString("\n")
	}
}

func asJSON(value any) any {
	fields, ok := value.(map[any]any)
	if !ok {
		return value
	}
	out := map[string]any{}
	for key, v := range fields {
		out[fmt.Sprint(key)] = asJSON(v)
	}
	return out
}

func refWord(ref smd.TypeRef) string {
	if ref.NamedType == nil {
		if word := atomWord(ref.Inlined); strings.Contains(word, "|") {
			return "(" + word + ")"
		}
		return atomWord(ref.Inlined)
	}
	word := strings.TrimPrefix(*ref.NamedType, modelPrefix)
	if ref.ElementRelationship != nil {
		word += "@" + string(*ref.ElementRelationship)
	}
	return word
}

func atomWord(a smd.Atom) string {
	var parts []string
	if a.Scalar != nil {
		parts = append(parts, string(*a.Scalar))
	}
	if l := a.List; l != nil {
		keys := strings.Join(l.Keys, ",")
		if keys == "" && l.ElementRelationship == smd.Associative {
			keys = "+"
		}
		parts = append(parts, "["+keys+"]"+refWord(l.ElementType))
	}
	if m := a.Map; m != nil {
		relation := string(m.ElementRelationship)
		switch {
		case !reflect.DeepEqual(m.ElementType, smd.TypeRef{}):
			parts = append(parts, "{"+relation+"}"+refWord(m.ElementType))
		case relation != "":
			parts = append(parts, "struct@"+relation)
		default:
			parts = append(parts, "struct")
		}
	}
	return strings.Join(parts, "|")
}
