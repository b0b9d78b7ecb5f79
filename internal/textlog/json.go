// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
)

// asJSON returns an entry as a JSON object on one line: time, level, msg,
// logger if named, and the values in order.
func (s sink) asJSON(importance Level, msg string, values []any) []byte {
	var line bytes.Buffer
	field := func(key string, value any) {
		before := byte(',')
		if line.Len() == 0 {
			before = '{'
		}
		line.WriteByte(before)
		line.Write(encoded(key))
		line.WriteByte(':')
		line.Write(encoded(value))
	}
	field("time", time.Now().UTC().Format(layout))
	field("level", importance.String())
	field("msg", msg)
	if s.name != "" {
		field("logger", s.name)
	}
	for _, pairs := range [][]any{s.values, values} {
		for i := 0; i < len(pairs); i += 2 {
			var value any = "(missing)"
			if i+1 < len(pairs) {
				value = plain(pairs[i+1])
			}
			field(fmt.Sprint(pairs[i]), value)
		}
	}
	line.WriteString("}\n")
	return VisibleJSON(line.Bytes())
}

// plain converts a value for JSON: values with their own text become text.
func plain(value any) any {
	switch v := value.(type) {
	case error, fmt.Stringer:
		return text(v)
	case logr.Marshaler:
		return marshalled(v)
	}
	return value
}

// encoded returns value as JSON, or as text if it cannot be encoded.
func encoded(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		out.Reset()
		_ = encoder.Encode(fmt.Sprintf("%+v", value)) // text can be encoded
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'})
}
