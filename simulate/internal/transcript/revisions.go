// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// revisions are the versions of objects that a case has seen, in their order. Their ranks
// are the same on two servers; the numbers are not, because of concurrent writes.
type revisions []int64

// collect records the versions of all objects in value. A value with a uid is an object;
// the version of a list or a bookmark is something else.
func (r *revisions) collect(value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v["uid"].(string); ok {
			text, _ := v["resourceVersion"].(string)
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				if i, known := slices.BinarySearch(*r, n); !known {
					*r = slices.Insert(*r, i, n)
				}
			}
		}
		for _, item := range v {
			r.collect(item)
		}
	case []any:
		for _, item := range v {
			r.collect(item)
		}
	}
}

// name returns "rv" and the rank of the newest object that is not newer than text.
func (r revisions) name(text string) string {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n == 0 {
		return text
	}
	i, known := slices.BinarySearch(r, n)
	if known {
		i++
	}
	return fmt.Sprintf("rv%d", i)
}

// token returns the content of a continue token.
func (r revisions) token(text string, clean func(string) string) string {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	var t struct {
		Version  string `json:"v"`
		Revision int64  `json:"rv"`
		Start    string `json:"start"`
	}
	if err != nil || json.Unmarshal(raw, &t) != nil {
		return text
	}
	revision := strconv.FormatInt(t.Revision, 10)
	if t.Revision > 0 {
		revision = r.name(revision)
	}
	return fmt.Sprintf("%s %s %q", t.Version, revision, clean(t.Start))
}
