// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"bytes"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// customColumns returns the columns of a CRD, or the age alone.
func customColumns(given []apiextensionsv1.CustomResourceColumnDefinition) tableColumns {
	if len(given) == 0 {
		given = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Age", Type: "date", Description: metadataDocs["creationTimestamp"], JSONPath: ".metadata.creationTimestamp"},
		}
	}
	heads := []metav1.TableColumnDefinition{nameColumn}
	paths := make([]*jsonpath.JSONPath, 0, len(given))
	for _, column := range given {
		about := column.Description
		if about == "" {
			about = "Custom resource definition column (in JSONPath format): " + column.JSONPath
		}
		heads = append(heads, metav1.TableColumnDefinition{Name: column.Name, Type: column.Type, Format: column.Format, Priority: column.Priority, Description: about})
		path := jsonpath.New(column.Name).AllowMissingKeys(true)
		if err := path.Parse("{" + column.JSONPath + "}"); err != nil {
			path = nil // a CRD with such a path is refused
		}
		paths = append(paths, path)
	}
	return tableColumns{Rows: []metav1.TableRow{}, Heads: heads, Cells: func(obj *object.Object) ([]any, error) {
		cells := []any{obj.Meta().GetName()}
		for i, path := range paths {
			cells = append(cells, customCell(path, given[i].Type, obj.Fields))
		}
		return cells, nil
	}}
}

// customCell returns the value at a path as a cell of a type; nil if it has none.
func customCell(path *jsonpath.JSONPath, kind string, fields map[string]any) any {
	if path == nil {
		return nil
	}
	found, err := path.FindResults(fields)
	if err != nil || len(found) == 0 || len(found[0]) == 0 {
		return nil
	}
	value := found[0][0].Interface()
	if kind == "string" {
		var text bytes.Buffer
		if err := path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}); err != nil {
			return nil
		}
		return text.String()
	}
	switch v := value.(type) {
	case int64:
		if kind == "number" {
			return float64(v)
		}
		return only(v, kind == "integer")
	case float64:
		if kind == "integer" {
			return int64(v)
		}
		return only(v, kind == "number")
	case bool:
		return only(v, kind == "boolean")
	case string:
		if kind != "date" {
			return nil
		}
		var t metav1.Time
		if err := t.UnmarshalQueryParameter(v); err != nil {
			return "<invalid>"
		}
		return table.ConvertToHumanReadableDateType(t)
	}
	return nil
}

// only returns a value if its type is right, otherwise nil.
func only(value any, right bool) any {
	if !right {
		return nil
	}
	return value
}
