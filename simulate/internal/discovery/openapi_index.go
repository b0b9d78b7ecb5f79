// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"crypto/sha512"
	"fmt"
	"strings"
	"time"
)

// schemaIndex lists the OpenAPI documents of a server, each with the hash of its content.
type schemaIndex struct {
	Paths map[string]schemaDocument `json:"paths"`
}

type schemaDocument struct {
	URL string `json:"serverRelativeURL"`
}

// schemas returns the index of all versions. A real server publishes a change up to a
// second after it applies it; this one at once, or later with PublishSchemasAfter.
func (x *Index) schemas() schemaIndex {
	index := schemaIndex{Paths: map[string]schemaDocument{}}
	for _, g := range x.groups() {
		for _, v := range g.versions {
			index.Paths[strings.TrimPrefix(v.path(), "/")] = schemaDocument{URL: v.documentURL()}
		}
	}
	return index
}

func (v servedVersion) documentURL() string { return "/openapi/v3" + v.path() + "?hash=" + v.hash() }

// hash changes when the published schemas of the kinds change.
func (v servedVersion) hash() string {
	sum := sha512.New()
	fmt.Fprintln(sum, v.path())
	for _, k := range v.kinds {
		fmt.Fprintln(sum, k.Resource, k.Kind, k.Namespaced, k.Builtin, k.Verbs, k.Published(time.Now()), k.Digest())
		for _, sub := range k.Subresources {
			fmt.Fprintln(sum, sub.Name, sub.Kind, sub.Verbs)
		}
	}
	return fmt.Sprintf("%X", sum.Sum(nil))
}
