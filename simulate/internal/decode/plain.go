// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
)

// A fast path for most bodies.

// longestPlainKey is the longest field name, in bytes, that YAML accepts in any notation.
const longestPlainKey = 160

// PlainFields decodes a body of JSON that a YAML decoder, which is many times slower,
// decodes to the same value: one line of ASCII with whole numbers and no duplicate field.
// It returns false for all other bodies.
func PlainFields(body []byte) (map[string]any, bool) {
	text := bytes.TrimSuffix(body, []byte("\n"))
	if len(text) == 0 || text[0] != '{' {
		return nil, false
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c < ' ' || c > '~':
			return nil, false
		case c == '\\':
			if i++; i == len(text) || strings.IndexByte(`"\bfnrtu`, text[i]) < 0 || text[i] == 'u' && !bytes.HasPrefix(text[i:], []byte("u00")) {
				return nil, false
			}
		}
	}
	var fields map[string]any
	if problems, err := Strictly(text, &fields); err != nil || len(problems) > 0 || !isPlain(fields, false) {
		return nil, false
	}
	return fields, true
}

// isPlain reports whether a value has only whole numbers, short names and no null in a
// list.
func isPlain(value any, inList bool) bool {
	switch v := value.(type) {
	case map[string]any:
		for name, each := range v {
			if len(name) > longestPlainKey || !isPlain(each, inList) {
				return false
			}
		}
	case []any:
		for _, each := range v {
			if !isPlain(each, true) {
				return false
			}
		}
	case nil:
		return !inList
	case float64:
		return false
	}
	return true
}

// has reports whether a value, or one inside it, is such.
func has(value any, such func(any) bool) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, each := range v {
			if has(each, such) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(each any) bool { return has(each, such) })
	}
	return such(value)
}

// isFraction reports whether value is a number that may be spelled in several ways.
func isFraction(value any) bool {
	_, ok := value.(float64)
	return ok
}

// isLarge reports whether value is a number that may be too large for its field, which the
// conversion of fields does not check.
func isLarge(value any) bool {
	v, ok := value.(int64)
	return ok && v != int64(int32(v))
}

// plainlyOn applies a merge patch or a strategic merge patch to old without encoding it. It
// returns nil for another patch, or if there are problems to report.
func (p Patch) plainlyOn(kind *kinds.Kind, old *object.Object) *object.Object {
	patch := p.Merging
	if p.strategic != nil {
		patch = p.strategic
	}
	given, _ := patch["metadata"].(map[string]any)
	_, owners := given["managedFields"]
	_, directive := given["$patch"] // may remove them
	if patch == nil || owners || directive || old.Corrupt || !isPlain(patch, false) || has(patch, isLarge) {
		return nil
	}
	fields := ownership.WithEntries(kinds.Loose(old, kind).Object, nil)
	if has(fields, isFraction) {
		return nil
	}
	if p.strategic == nil {
		fields = jsontree.Merge(fields, patch)
	} else {
		typed, err := models.Scheme().New(kind.GroupVersionKind)
		if err != nil {
			return nil
		}
		if fields, err = strategicMerge(runtime.DeepCopyJSON(fields), runtime.DeepCopyJSON(patch), typed); err != nil {
			return nil
		}
	}
	if fields["apiVersion"] != kind.GroupVersion().String() || fields["kind"] != kind.Kind {
		return nil
	}
	if _, ok := fields["metadata"].(map[string]any); !ok {
		return nil
	}
	obj := objectOf(kind, fields)
	if obj == nil {
		return nil
	}
	ownership.SetEntries(obj, ownership.EntriesOf(old))
	return obj
}

// objectOf decodes fields, which it does not modify, and sets defaults. It returns nil if there
// are problems to report.
func objectOf(kind *kinds.Kind, fields map[string]any) *object.Object {
	if !kind.Builtin {
		obj := &object.Object{Fields: runtime.DeepCopyJSON(fields)}
		if unknown, err := coerce(kind, obj.Fields); err != nil || len(unknown) > 0 {
			return nil
		}
		return obj
	}
	typed, err := models.Scheme().New(kind.GroupVersionKind)
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, typed, true) != nil {
		return nil
	}
	defaults.Set(typed)
	obj, err := kinds.ObjectOfTyped(kind, typed)
	if err != nil {
		return nil
	}
	return obj
}
