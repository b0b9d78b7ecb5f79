// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"encoding/json"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// tableOptions returns an error for an invalid includeObject.
func (e *Encoder) tableOptions(query url.Values) error {
	opts := &metav1.TableOptions{}
	if err := scheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, opts); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if errs := metav1validation.ValidateTableOptions(opts); len(errs) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: %v", errs[0]))
	}
	e.include = opts.IncludeObject
	return nil
}

// table returns objects as rows. headed adds the definitions of the columns.
func (e Encoder) table(objects []*object.Object, meta metav1.ListMeta, headed bool) ([]byte, error) {
	columns := columnsOf(e.kind)
	out := metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: e.metaVersion(), Kind: AsTable}, ListMeta: meta, Rows: columns.Rows}
	if headed {
		out.ColumnDefinitions = columns.Heads
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

func (e Encoder) row(columns tableColumns, obj *object.Object) (row metav1.TableRow, err error) {
	obj, err = e.kind.Of(obj)
	if err != nil {
		return row, err
	}
	if row.Cells, err = columns.Cells(e.kind.Shown(obj)); err != nil {
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
