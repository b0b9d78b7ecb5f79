// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// slots puts templates into objects. An object gets a placeholder that survives encoding as
// YAML; text then puts the templates in their places.
type slots struct {
	prefix string
	blocks []block
	inline []string
}

// block returns lines for an indentation.
type block func(indent int) []string

// newSlots returns slots whose placeholders do not occur in text.
func newSlots(text string) *slots {
	prefix := "zz-flyball-pack" // sorted last among the keys of an object
	for strings.Contains(text, prefix) {
		prefix += "z"
	}
	return &slots{prefix: prefix}
}

// within returns a placeholder for a part of a string, which is not quoted.
func (s *slots) within(template string) string {
	s.inline = append(s.inline, template)
	return fmt.Sprintf("%s-i%d-", s.prefix, len(s.inline)-1)
}

// entry returns a placeholder for entries of an object: the key of null.
func (s *slots) entry(b block) string {
	s.blocks = append(s.blocks, b)
	return fmt.Sprintf("%s-b%d-", s.prefix, len(s.blocks)-1)
}

// item returns a placeholder for items of a list.
func (s *slots) item(b block) string { return s.entry(b) }

// text returns an object as a template. Braces of the object are text in it.
func (s *slots) text(object any) (string, error) {
	encoded, err := yaml.Marshal(object)
	if err != nil {
		return "", err
	}
	text := strings.ReplaceAll(string(encoded), "{{", `{{ "{{" }}`)
	whole := regexp.MustCompile(`(?m)^( *)(?:- )?` + s.prefix + `-b(\d+)-(?:: null)?\n`)
	text = whole.ReplaceAllStringFunc(text, func(line string) string {
		found := whole.FindStringSubmatch(line)
		lines := s.blocks[number(found[2])](len(found[1]))
		return found[1] + strings.Join(lines, "\n"+found[1]) + "\n"
	})
	part := regexp.MustCompile(s.prefix + `-i(\d+)-`)
	return part.ReplaceAllStringFunc(text, func(found string) string {
		return s.inline[number(part.FindStringSubmatch(found)[1])]
	}), nil
}

func number(digits string) (n int) {
	_, _ = fmt.Sscan(digits, &n)
	return n
}

// optional is an entry of an object that is left out where the value is empty.
func optional(key, value string) block {
	return func(indent int) []string {
		return []string{
			"{{- with " + value + " }}",
			key + ":",
			fmt.Sprintf("  {{- toYaml . | nindent %d }}", indent+2),
			"{{- end }}",
		}
	}
}

// more are further entries or items.
func more(value string) block {
	return func(indent int) []string {
		return []string{"{{- with " + value + " }}", fmt.Sprintf("{{- toYaml . | nindent %d }}", indent), "{{- end }}"}
	}
}

// lines are fixed ones.
func lines(all ...string) block { return func(int) []string { return all } }
