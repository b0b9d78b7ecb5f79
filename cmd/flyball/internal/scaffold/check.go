// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

var (
	upperCamel   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	dnsLabel     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	pathElement  = regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9._~-]*$`)
	pathDomain   = regexp.MustCompile(`^[a-z0-9-][a-z0-9.-]*$`)
	majorVersion = regexp.MustCompile(`^v[0-9]+$`)
	lowVersion   = regexp.MustCompile(`^v(1|0[0-9]*)$`)
	gopkgVersion = regexp.MustCompile(`\.v[0-9]+$`)
)

// checkModule follows the rules of the go command for the path of a module.
func checkModule(module string) error {
	problem := func(text string) error {
		return fmt.Errorf("module path %q: %s; give a path such as example.com/me/database", module, text)
	}
	if module == "" {
		return errors.New("no module path is given; give one, such as flyball new example.com/me/database --kind Database")
	}
	elements := strings.Split(module, "/")
	for _, e := range elements {
		switch {
		case e == "":
			return problem("an element between slashes is empty")
		case !pathElement.MatchString(e) || strings.HasSuffix(e, "."):
			return problem(fmt.Sprintf("%q is not letters, digits and -._~, or begins or ends with a dot", e))
		case slices.Contains([]string{"internal", "vendor", "testdata"}, e):
			return problem(fmt.Sprintf("the go command gives %q another meaning", e))
		}
	}
	domain, last := elements[0], elements[len(elements)-1]
	switch {
	case !strings.Contains(domain, ".") || !pathDomain.MatchString(domain) || strings.HasPrefix(domain, "-"):
		return problem(fmt.Sprintf("the first element %q is not a domain name in lower case", domain))
	case within(module, flyballModule):
		return problem("it is within Flyball's own module")
	case domain == "gopkg.in":
		if !gopkgVersion.MatchString(last) {
			return problem("a path of gopkg.in ends in a version, such as .v2")
		}
	case len(elements) > 1 && lowVersion.MatchString(last):
		return problem(fmt.Sprintf("the version suffix %q is not /v2 or higher; leave it out", last))
	}
	return nil
}

func within(path, top string) bool { return path == top || strings.HasPrefix(path, top+"/") }

// directoryFor returns the directory that a module is written into by default: the last
// element of its path that is not a version.
func directoryFor(module string) string {
	elements := strings.Split(module, "/")
	last := elements[len(elements)-1]
	if majorVersion.MatchString(last) && len(elements) > 1 {
		last = elements[len(elements)-2]
	}
	return last
}

// forges are hosts whose name is not that of the module's author.
var forges = []string{"bitbucket.org", "codeberg.org", "git.sr.ht", "github.com", "gitlab.com", "gopkg.in"}

// groupFor returns the API group of a module by default: its host, or at a forge a group in
// example.com.
func groupFor(module string) string {
	elements := strings.Split(module, "/")
	if !slices.Contains(forges, elements[0]) {
		return elements[0]
	}
	if owner := strings.ToLower(elements[min(1, len(elements)-1)]); dnsLabel.MatchString(owner) {
		return owner + ".example.com"
	}
	return "example.com"
}

func checkGroup(group string) error {
	labels := strings.Split(group, ".")
	switch {
	case len(group) > 190:
		return fmt.Errorf("group %q has %d characters; give a domain name of at most 190", group, len(group))
	case len(labels) < 2 || slices.ContainsFunc(labels, func(l string) bool { return !dnsLabel.MatchString(l) }):
		return fmt.Errorf("group %q is not a domain name of at least two labels in lower case; give one that you own, such as --group databases.example.com", group)
	case inDomain(group, "k8s.io") || inDomain(group, "kubernetes.io"):
		return fmt.Errorf("group %q is reserved for Kubernetes; give a domain that you own, such as --group databases.example.com", group)
	}
	return nil
}

func inDomain(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }

// maxKind leaves room for "-operator" in names of at most 63 characters.
const maxKind = 50

// checkKind checks the form of a kind.
func checkKind(kind string) error {
	n := noun{}
	if upperCamel.MatchString(kind) {
		n = nounOf(kind)
	}
	switch {
	case kind == "":
		return errors.New("no kind is given; give one, such as --kind Database")
	case token.IsKeyword(kind) || token.IsKeyword(strings.ToLower(kind)):
		return fmt.Errorf("kind %q is a keyword of Go, which cannot name the variables of the kind; choose another name, such as %s", kind, suggestion(kind))
	case n.kind == "":
		return fmt.Errorf("kind %q is not a name in upper camel case; give letters and digits that begin with a capital, such as --kind %s", kind, suggestion(kind))
	case len(kind) > maxKind:
		return fmt.Errorf("kind %q has %d characters; give at most %d", kind, len(kind), maxKind)
	case types.Universe.Lookup(n.variable) != nil:
		return fmt.Errorf("kind %q would hide Go's own %q; choose another name, such as %s", kind, n.variable, suggestion(kind))
	}
	return nil
}

// suggestion makes a kind of a word that is none.
func suggestion(word string) string {
	var out strings.Builder
	capital := true
	for _, r := range word {
		switch {
		case r >= 'a' && r <= 'z' && capital:
			out.WriteRune(r - 'a' + 'A')
			capital = false
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' && out.Len() > 0:
			out.WriteRune(r)
			capital = false
		default:
			capital = true
		}
	}
	name := out.String()
	if name == "" {
		return "Database"
	}
	if v := variableOf(name); token.IsKeyword(v) || types.Universe.Lookup(v) != nil {
		return "My" + name
	}
	return name
}
