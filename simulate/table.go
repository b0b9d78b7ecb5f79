// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// columns are what a table shows of the objects of a kind.
type columns struct {
	heads []metav1.TableColumnDefinition
	// cells is one row. The object is in the version of the kind.
	cells func(obj *object.Object) ([]any, error)
	rows  []metav1.TableRow // of nothing: nil or empty, as a real server's are
}

// metadataDocs say what the fields of metadata are.
var metadataDocs = metav1.ObjectMeta{}.SwaggerDoc()

// The columns that nearly all kinds have.
var (
	nameColumn = metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metadataDocs["name"]}
	madeColumn = metav1.TableColumnDefinition{Name: "Created At", Type: "date", Description: metadataDocs["creationTimestamp"]}
	ageColumn  = metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: metadataDocs["creationTimestamp"]}
)

// columnsOf are the columns of a kind.
func columnsOf(k *Kind) columns {
	if k.custom() {
		return customColumns(k.columns)
	}
	if known, ok := builtinColumns()[k.GroupVersionKind]; ok {
		return known
	}
	return plainColumns
}

// plainColumns are those of kinds of which nothing more is shown.
var plainColumns = columns{heads: []metav1.TableColumnDefinition{nameColumn, madeColumn}, cells: func(obj *object.Object) ([]any, error) {
	m := obj.Meta()
	return []any{m.GetName(), m.GetCreationTimestamp().UTC().Format(time.RFC3339)}, nil
}}

// tableOptions refuses what a table cannot include.
func (c *call) tableOptions() error {
	opts := &metav1.TableOptions{}
	if err := scheme.ParameterCodec.DecodeParameters(c.URL.Query(), metav1.SchemeGroupVersion, opts); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if errs := metav1validation.ValidateTableOptions(opts); len(errs) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: %v", errs[0]))
	}
	c.encoder.include = opts.IncludeObject
	return nil
}

// table is objects as rows. headed: it says what the columns are.
func (e encoder) table(objects []*object.Object, meta metav1.ListMeta, headed bool) ([]byte, error) {
	columns := columnsOf(e.kind)
	out := metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: e.metaVersion(), Kind: asTable}, ListMeta: meta, Rows: columns.rows}
	if headed {
		out.ColumnDefinitions = columns.heads
	}
	for _, obj := range objects {
		row, err := e.row(columns, obj)
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, row)
	}
	return json.Marshal(out)
}

func (e encoder) row(columns columns, obj *object.Object) (row metav1.TableRow, err error) {
	obj, err = e.kind.of(obj)
	if err != nil {
		return row, err
	}
	if row.Cells, err = columns.cells(e.kind.shown(obj)); err != nil {
		return row, err
	}
	row.Conditions = conditionsOf(e.kind, obj)
	inside := e
	switch e.include {
	case metav1.IncludeNone:
		return row, nil
	case metav1.IncludeObject:
		inside.as = ""
	default:
		inside.as = asMetadata
	}
	row.Object.Raw, err = inside.single(obj)
	return row, err
}

// age is how long ago something was.
func age(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

// printed are the columns of a kind that has a Go type.
func printed[T any](heads []metav1.TableColumnDefinition, cells func(*T) []any) columns {
	return columns{rows: []metav1.TableRow{}, heads: heads, cells: func(obj *object.Object) ([]any, error) {
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(jsonvalue.Unmanaged(obj.Fields), typed); err != nil {
			return nil, err
		}
		return cells(typed), nil
	}}
}
