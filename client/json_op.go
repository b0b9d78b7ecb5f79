// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import "encoding/json"

// JSONOp is one operation of a JSONPatch. Op is add, remove, replace, move, copy or
// test; Path and From are JSON pointers.
type JSONOp struct {
	Op, Path string
	From     string
	Value    any
}

// MarshalJSON omits the fields that the operation does not have. A nil Value is null if
// the operation requires one.
func (o JSONOp) MarshalJSON() ([]byte, error) {
	op := map[string]any{"op": o.Op, "path": o.Path}
	switch o.Op {
	case "add", "replace", "test":
		op["value"] = o.Value
	case "move", "copy":
		op["from"] = o.From
	}
	return json.Marshal(op)
}
