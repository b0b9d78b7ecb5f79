// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"testing"

	"github.com/flyball-dev/flyball/informer"
)

// go doc shows no fields of an alias, so the comment beside it names each.
func TestFace_CommentsOfAliasesNameTheFields(t *testing.T) {
	structs := map[string]reflect.Type{
		"Key": reflect.TypeFor[informer.Key](), "WatchScope": reflect.TypeFor[informer.WatchScope](),
		"Written": reflect.TypeFor[informer.Written](), "Undecodable": reflect.TypeFor[informer.Undecodable](),
		"Snapshot": reflect.TypeFor[informer.Snapshot](), "ScopeState": reflect.TypeFor[informer.ScopeState](),
		"HandlerSnapshot": reflect.TypeFor[informer.HandlerSnapshot](), "Anomalies": reflect.TypeFor[informer.Anomalies](),
		"Audits": reflect.TypeFor[informer.Audits](), "UndecodableError": reflect.TypeFor[informer.UndecodableError](),
		"OutOfScopeError": reflect.TypeFor[informer.OutOfScopeError](), "NamespaceError": reflect.TypeFor[informer.NamespaceError](),
		"NotSyncedError": reflect.TypeFor[informer.NotSyncedError](), "NotSettledError": reflect.TypeFor[informer.NotSettledError](),
		"ReleasedError":  reflect.TypeFor[informer.ReleasedError](),
		"NotServedError": reflect.TypeFor[informer.NotServedError](), "TooLargeError": reflect.TypeFor[informer.TooLargeError](),
		"Compact":               reflect.TypeFor[informer.Compact](),
		"UnexpectedAnswerError": reflect.TypeFor[informer.UnexpectedAnswerError](),
	}
	withoutFields := map[string]bool{
		"Object": true, "Version": true, "ListerWatcher": true, "IndexFunc": true, "WriteEffect": true, "State": true,
	}
	file, err := parser.ParseFile(token.NewFileSet(), "face.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			alias, ok := spec.(*ast.TypeSpec)
			if !ok || withoutFields[alias.Name.Name] {
				continue
			}
			typ, known := structs[alias.Name.Name]
			if !known {
				t.Errorf("%s: add the alias to a table of this test", alias.Name.Name)
				continue
			}
			for field := range typ.Fields() {
				if field.IsExported() && !regexp.MustCompile(`\b`+field.Name+`\b`).MatchString(alias.Doc.Text()) {
					t.Errorf("%s: the comment does not say what %s is", alias.Name.Name, field.Name)
				}
			}
		}
	}
}
