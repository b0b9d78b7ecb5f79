// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"maps"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// printers has the columns of kinds, by "group/version, kind".
type printers map[string]tableColumns

// builtinColumns has the columns of built-in kinds that show more than name and age.
var builtinColumns = sync.OnceValue(func() map[schema.GroupVersionKind]tableColumns {
	all := printers{}
	for _, some := range []printers{podPrinters(), corePrinters(), workloadPrinters(), networkPrinters(), storagePrinters(), policyPrinters()} {
		maps.Copy(all, some)
	}
	out, docs := map[schema.GroupVersionKind]tableColumns{}, columnDocs()
	for name, columns := range all {
		for i, head := range columns.Heads {
			if doc, ok := docs[name][head.Name]; ok {
				columns.Heads[i].Description = doc
			}
		}
		version, kind, _ := strings.Cut(name, " ")
		if gv, err := schema.ParseGroupVersion(version); err == nil {
			out[gv.WithKind(kind)] = columns
		}
	}
	return out
})

// heads returns the columns of names that are separated by bars. The suffix # marks an
// integer, ? a boolean; the prefix + marks a column of wide output.
func heads(names string) (out []metav1.TableColumnDefinition) {
	for name := range strings.SplitSeq(names, "|") {
		column := metav1.TableColumnDefinition{Name: strings.Trim(name, "+#?"), Type: "string"}
		switch column.Name {
		case "Name":
			column = nameColumn
		case "Age":
			column = ageColumn
		}
		if strings.HasPrefix(name, "+") {
			column.Priority = 1
		}
		switch {
		case strings.HasSuffix(name, "#"):
			column.Type = "integer"
		case strings.HasSuffix(name, "?"):
			column.Type = "boolean"
		}
		out = append(out, column)
	}
	return out
}

const (
	cellNone    = "<none>"
	cellUnset   = "<unset>"
	cellUnknown = "<unknown>"

	// listedAtMost is how many values of a list a cell shows.
	listedAtMost = 3
)

// or returns a text, or otherwise if it is empty.
func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// orValue returns the text of a pointer, or otherwise if it is nil.
func orValue[T ~string](value *T, otherwise string) string {
	if value == nil {
		return otherwise
	}
	return string(*value)
}
