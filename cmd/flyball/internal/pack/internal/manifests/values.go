// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// value is one of the chart's values, or a group of them.
type value struct {
	key, comment string
	standard     any
	schema       schema
	parts        []value // of a group
}

// schema is one of JSON Schema, draft 7.
type schema = map[string]any

// valuesFile returns values.yaml.
func valuesFile(all []value) ([]byte, error) {
	var out strings.Builder
	out.WriteString("# The values of the chart. Others are refused.\n")
	if err := writeValues(&out, all, ""); err != nil {
		return nil, err
	}
	return []byte(out.String()), nil
}

func writeValues(out *strings.Builder, all []value, indent string) error {
	for _, v := range all {
		if indent == "" {
			out.WriteString("\n")
		}
		for line := range strings.SplitSeq(v.comment, "\n") {
			out.WriteString(indent + "# " + line + "\n")
		}
		if v.parts != nil {
			out.WriteString(indent + v.key + ":\n")
			if err := writeValues(out, v.parts, indent+"  "); err != nil {
				return err
			}
			continue
		}
		text, err := yaml.Marshal(map[string]any{v.key: v.standard})
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			out.WriteString(indent + line)
		}
	}
	return nil
}

// schemaFile returns values.schema.json. A chart that others depend on gets their global
// values.
func schemaFile(name string, all []value) ([]byte, error) {
	out := objectOf(all)
	out["$schema"] = "http://json-schema.org/draft-07/schema#"
	out["title"] = "Values of the chart " + name
	out["properties"].(schema)["global"] = schema{"type": "object", "description": "Values of a chart that depends on this one. They are not used."}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the schema of the values: %w", err)
	}
	return append(text, '\n'), nil
}

func objectOf(all []value) schema {
	properties := schema{}
	for _, v := range all {
		one := v.schema
		if v.parts != nil {
			one = objectOf(v.parts)
		}
		one["description"] = strings.ReplaceAll(v.comment, "\n", " ")
		properties[v.key] = one
	}
	return schema{"type": "object", "additionalProperties": false, "properties": properties}
}

// Schemas of the values.

func text() schema    { return schema{"type": "string"} }
func boolean() schema { return schema{"type": "boolean"} }
func anything() schema {
	return schema{"type": "object"}
}

func pattern(expression string) schema { return schema{"type": "string", "pattern": expression} }

func oneOf(words ...any) schema { return schema{"enum": words} }

func listOf(of schema) schema { return schema{"type": "array", "items": of} }

func texts() schema { return schema{"type": "object", "additionalProperties": text()} }

// fields is an object with these properties alone, the first of which are required.
func fields(required int, names []string, properties ...schema) schema {
	all, must := schema{}, []any{}
	for i, name := range names {
		all[name] = properties[i]
		if i < required {
			must = append(must, name)
		}
	}
	out := schema{"type": "object", "additionalProperties": false, "properties": all}
	if required > 0 {
		out["required"] = must
	}
	return out
}

func quantities() schema {
	return schema{"type": "object", "additionalProperties": schema{"type": []any{"string", "number"}}}
}
