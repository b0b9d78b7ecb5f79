// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import "strings"

// Image is the name of an image in its parts.
type Image struct {
	Repository, Tag, Digest string
}

// ParseImage cuts the name of an image.
func ParseImage(text string) (out Image) {
	text, out.Digest, _ = strings.Cut(text, "@")
	if i := strings.LastIndex(text, ":"); i > strings.LastIndex(text, "/") {
		text, out.Tag = text[:i], text[i+1:]
	}
	out.Repository = text
	return out
}
