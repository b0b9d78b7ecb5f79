// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// tableColumns are what a table shows of the objects of a kind: of the built-in ones as kubectl get
// shows them, and those that a CRD defines.
type tableColumns struct {
	Heads []metav1.TableColumnDefinition
	// Cells returns one row. The object is in the version of the kind.
	Cells func(obj *object.Object) ([]any, error)
	Rows  []metav1.TableRow // of no rows: nil or empty, as on a real server
}

// metadataDocs documents the fields of metadata.
var metadataDocs = metav1.ObjectMeta{}.SwaggerDoc()

// The columns of nearly all kinds.
var (
	nameColumn = metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metadataDocs["name"]}
	madeColumn = metav1.TableColumnDefinition{Name: "Created At", Type: "date", Description: metadataDocs["creationTimestamp"]}
	ageColumn  = metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: metadataDocs["creationTimestamp"]}
)

// columnsOf returns the columns of a kind.
func columnsOf(k *kinds.Kind) tableColumns {
	if k.Custom() {
		return customColumns(k.Columns)
	}
	if known, ok := builtinColumns()[k.GroupVersionKind]; ok {
		return known
	}
	return plainColumns
}

// plainColumns are the columns of kinds without special ones.
var plainColumns = tableColumns{Heads: []metav1.TableColumnDefinition{nameColumn, madeColumn}, Cells: func(obj *object.Object) ([]any, error) {
	m := obj.Meta()
	return []any{m.GetName(), m.GetCreationTimestamp().UTC().Format(time.RFC3339)}, nil
}}

// age returns the time since t.
func age(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

// printed returns the columns of a kind with a Go type.
func printed[T any](heads []metav1.TableColumnDefinition, cells func(*T) []any) tableColumns {
	return tableColumns{Rows: []metav1.TableRow{}, Heads: heads, Cells: func(obj *object.Object) ([]any, error) {
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(jsontree.Unmanaged(obj.Fields), typed); err != nil {
			return nil, err
		}
		return cells(typed), nil
	}}
}
