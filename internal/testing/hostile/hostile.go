// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostile generates inputs, of any size, for tests of all decoders of
// foreign data: small JSON that decodes to much, JSON at the edges of the
// format, and invalid JSON.
package hostile

import (
	"bytes"
	"fmt"
	"strings"
)

// Input is one test input.
type Input struct {
	Name string
	Text []byte
}

// Values returns valid JSON values of about size bytes with an unusual decoded
// size, depth or form.
func Values(size int) []Input {
	depth := min(size/2, 9000)
	return []Input{
		{"empty objects", list(size, "{}")},
		{"empty lists", list(size, "[]")},
		{"objects of one member", list(size, `{"":0}`)},
		{"objects of one object", list(size, `{"a":{}}`)},
		{"objects with a name", list(size, `{"name":"a"}`)},
		{"objects of another shape", list(size, `{"name":[],"image":{},"env":"x","resources":1}`)},
		{"lists of one object", list(size, "[{}]")},
		{"nulls", list(size, "null")},
		{"digits", list(size, "0")},
		{"empty strings", list(size, `""`)},
		{"long number", bytes.Repeat([]byte("7"), size)},
		{"long fraction", append([]byte("0."), bytes.Repeat([]byte("7"), size)...)},
		{"long exponent", []byte("1e" + strings.Repeat("9", max(size, 1)))},
		{"many long numbers", list(size, strings.Repeat("8", 400))},
		{"many quantities", list(size, `"1e99999"`)},
		{"long string", quoted(size, "x")},
		{"string of escapes", quoted(size, `\u0000`)},
		{"string of lone surrogates", quoted(size, `\ud800`)},
		{"string of angle brackets", quoted(size, "<")},
		{"string that is not UTF-8", quoted(size, "\xff")},
		{"many keys", object(size, func(i int) string { return fmt.Sprintf(`"%x":""`, i) })},
		{"many keys of empty objects", object(size, func(i int) string { return fmt.Sprintf(`"%x":{}`, i) })},
		{"many keys of empty lists", object(size, func(i int) string { return fmt.Sprintf(`"%x":[]`, i) })},
		{"one key many times", object(size, func(int) string { return `"name":"a"` })},
		{"one key of lists many times", object(size, func(int) string { return `"containers":[{}]` })},
		{"empty key many times", object(size, func(int) string { return `"":{}` })},
		{"long keys", object(size, func(i int) string { return fmt.Sprintf(`"%s%x":0`, strings.Repeat("k", 1000), i) })},
		{"deep lists", nested(depth, "[", "0", "]")},
		{"deep objects", nested(depth/3, `{"a":`, "0", "}")},
		{"deep schema", nested(min(size/9, 900), `{"items":`, string(quoted(size/2, "x")), "}")},
		{"deep beyond all bounds", nested(size/2, "[", "", "]")},
	}
}

// Objects returns JSON objects that start with the members of head, such as
// `"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}`, and have each of
// Values at each of the dot-separated paths.
func Objects(size int, head string, paths ...string) []Input {
	var out []Input
	for _, value := range Values(size) {
		for _, path := range paths {
			text := value.Text
			parts := strings.Split(path, ".")
			for i := len(parts) - 1; i >= 0; i-- {
				begin := ""
				if i == 0 && head != "" {
					begin = head + ","
				}
				if part, isList := strings.CutSuffix(parts[i], "[]"); isList {
					text = fmt.Appendf(nil, `{%s%q:[%s]}`, begin, part, text)
				} else {
					text = fmt.Appendf(nil, `{%s%q:%s}`, begin, part, text)
				}
			}
			out = append(out, Input{value.Name + " at " + path, text})
		}
	}
	return out
}

// Garbage returns invalid JSON, without line breaks.
func Garbage() []Input {
	return []Input{
		{"a page of a proxy", []byte("<html><body><h1>502 Bad Gateway</h1></body></html>")},
		{"text", []byte("upstream connect error or disconnect/reset before headers")},
		{"zero bytes", make([]byte, 64)},
		{"bytes of all values", allBytes()},
		{"byte order mark", []byte("\xef\xbb\xbf{}")},
		{"a comma", []byte(",")},
		{"an end", []byte("}")},
		{"a number", []byte("42")},
		{"null", []byte("null")},
		{"a string", []byte(`"ADDED"`)},
		{"a list", []byte(`[{"type":"ADDED"}]`)},
		{"an empty object", []byte("{}")},
		{"an object that does not end", []byte(`{"type":"MODIFIED","object":{"metadata":{"name":"a"`)},
		{"a string that does not end", []byte(`{"type":"MODIFIED","object":{"metadata":{"name":"a`)},
		{"a list that ends as an object", []byte(`{"type":"MODIFIED","object":{"a":[}}`)},
		{"an object of garbage", []byte(`{"type":"MODIFIED","object":{garbage}}`)},
		{"NaN", []byte(`{"type":"MODIFIED","object":{"a":NaN}}`)},
		{"an event of a type of its own", []byte(`{"type":"EXPLODED","object":{}}`)},
		{"an event without an object", []byte(`{"type":"MODIFIED"}`)},
		{"an event of null", []byte(`{"type":"MODIFIED","object":null}`)},
		{"an event of a number", []byte(`{"type":"MODIFIED","object":7}`)},
		{"a bookmark of nothing", []byte(`{"type":"BOOKMARK","object":{}}`)},
	}
}

func list(size int, element string) []byte {
	n := max(size/(len(element)+1), 1)
	return append(append([]byte("["+element), bytes.Repeat([]byte(","+element), n-1)...), ']')
}

func quoted(size int, of string) []byte {
	return append(append([]byte{'"'}, bytes.Repeat([]byte(of), max(size/len(of), 1))...), '"')
}

func object(size int, member func(i int) string) []byte {
	out := []byte("{" + member(0))
	for i := 1; len(out) < size; i++ {
		out = append(append(out, ','), member(i)...)
	}
	return append(out, '}')
}

func nested(depth int, open, inner, shut string) []byte {
	out := append(bytes.Repeat([]byte(open), depth), inner...)
	return append(out, bytes.Repeat([]byte(shut), depth)...)
}

func allBytes() []byte {
	var out []byte
	for c := range 256 {
		if c != '\n' && c != '\r' {
			out = append(out, byte(c))
		}
	}
	return out
}
