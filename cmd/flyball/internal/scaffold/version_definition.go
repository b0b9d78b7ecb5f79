// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"slices"
	"strings"
)

// addDefinitionVersion adds a version to the CustomResourceDefinition of a name in a file that
// flyball crds has written. Its schema is that of the version from. The Service
// namespace/service converts.
func addDefinitionVersion(text []byte, name, from, to, namespace, service string) ([]byte, error) {
	const separator = "\n---\n"
	documents := strings.Split(strings.TrimRight(string(text), "\n"), separator)
	at := slices.IndexFunc(documents, func(d string) bool { return strings.Contains(d+"\n", "\n  name: "+name+"\n") })
	if at < 0 {
		return nil, fmt.Errorf("it has no definition %s; write it with make crd", name)
	}
	document := documents[at]
	head, versions, ok := strings.Cut(document, "\n  versions:\n")
	if !ok {
		return nil, fmt.Errorf("the definition %s has no versions in the form that flyball crds writes; write it with make crd", name)
	}
	blocks := strings.Split("\n"+versions, "\n  - ")[1:]
	versionOf := func(block string) string {
		for line := range strings.SplitSeq("    "+block, "\n") {
			if v, ok := strings.CutPrefix(line, "    name: "); ok {
				return v
			}
		}
		return ""
	}
	source := slices.IndexFunc(blocks, func(b string) bool { return versionOf(b) == from })
	switch {
	case source < 0:
		return nil, fmt.Errorf("the definition %s has no version %s; write it with make crd", name, from)
	case slices.ContainsFunc(blocks, func(b string) bool { return versionOf(b) == to }):
		return nil, fmt.Errorf("the definition %s has the version %s already", name, to)
	}
	var copied []string
	for line := range strings.SplitSeq("    "+blocks[source], "\n") {
		switch {
		case strings.HasPrefix(line, "    deprecat"):
			continue
		case line == "    name: "+from:
			line = "    name: " + to
		case line == "    served: false":
			line = "    served: true"
		case line == "    storage: true":
			line = "    storage: false"
		}
		copied = append(copied, line)
	}
	before := slices.IndexFunc(blocks, func(b string) bool { return versionOf(b) > to })
	if before < 0 {
		before = len(blocks)
	}
	blocks = slices.Insert(blocks, before, strings.TrimPrefix(strings.Join(copied, "\n"), "    "))
	if !strings.Contains(head, "\n  conversion:\n") {
		above, below, ok := strings.Cut(head, "\nspec:\n")
		if !ok {
			return nil, fmt.Errorf("the definition %s has no spec in the form that flyball crds writes; write it with make crd", name)
		}
		head = above + "\nspec:\n" + fmt.Sprintf(`  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service:
          name: %s
          namespace: %s
          path: /convert
      conversionReviewVersions:
      - v1
`, service, namespace) + below
	}
	documents[at] = head + "\n  versions:\n  - " + strings.Join(blocks, "\n  - ")
	return []byte(strings.Join(documents, separator) + "\n"), nil
}
