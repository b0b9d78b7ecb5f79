// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"strings"
	"unicode"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// noun is a kind as it is written in different places.
type noun struct {
	kind, kinds       string // PostgresCluster, PostgresClusters
	variable, several string // postgresCluster, postgresClusters
	resource, plural  string // postgrescluster, postgresclusters
}

func nounOf(kind string) noun {
	n := noun{kind: kind, kinds: pluralOf(kind), variable: variableOf(kind), resource: strings.ToLower(kind)}
	n.several, n.plural = pluralOf(n.variable), strings.ToLower(n.kinds)
	return n
}

// pluralOf follows the rules by which Kubernetes guesses resources from kinds, except that
// it leaves a y after a vowel.
func pluralOf(word string) string {
	lower := strings.ToLower(word)
	for _, end := range []string{"s", "x", "z", "ch", "sh"} {
		if strings.HasSuffix(lower, end) {
			return word + "es"
		}
	}
	if stem, ok := strings.CutSuffix(word, "y"); ok && !strings.ContainsAny(lower[max(0, len(lower)-2):len(lower)-1], "aeiou") {
		return stem + "ies"
	}
	return word + "s"
}

// variableOf lowers the first word of a name: database, dnsRecord.
func variableOf(name string) string {
	letters := []rune(name)
	for i, r := range letters {
		if i > 0 && (!unicode.IsUpper(r) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			break
		}
		letters[i] = unicode.ToLower(r)
	}
	return string(letters)
}

// renaming returns the names of another kind in place of those of n.
func (n noun) renaming(to noun) gotree.Names {
	return gotree.Names{
		Idents:  map[string]string{n.kind: to.kind, n.kinds: to.kinds, n.variable: to.variable, n.several: to.several},
		Strings: map[string]string{n.kind: to.kind, n.kinds: to.kinds, n.variable: to.resource, n.several: to.plural},
	}
}

// article returns "a" or "an" and the word.
func article(word string) string {
	if strings.ContainsAny(word[:1], "AEIOUaeiou") {
		return "an " + word
	}
	return "a " + word
}

// inWords returns a list as a sentence has it: a, b and c.
func inWords(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}
