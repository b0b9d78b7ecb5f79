// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	_ "embed"
	"maps"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// The template is a copy of examples/operator, because go:embed cannot read another module.
// A test holds it equal to the example.
//
//go:embed template.txtar
var templateArchive []byte

//go:embed parts.txtar
var partsArchive []byte

// Names of the template.
const (
	templateModule = "github.com/flyball-dev/flyball/examples/operator"
	templateGroup  = "example.flyball.dev"
	flyballModule  = "github.com/flyball-dev/flyball"
	templateAPI    = "api/v1/kind.go"
)

// files are the files of a project by their paths, with slashes.
type files map[string][]byte

// unpack reads an archive in the format of txtar: each file follows a line "-- name --".
func unpack(archive []byte) files {
	all := files{}
	name := ""
	for line := range bytes.Lines(archive) {
		title, ok := strings.CutPrefix(string(line), "-- ")
		if title, isTitle := strings.CutSuffix(title, " --\n"); ok && isTitle {
			name = title
			all[name] = []byte{}
		} else if name != "" {
			all[name] = append(all[name], line...)
		}
	}
	return all
}

// licence begins the Go files of the template; those of a project are its authors'.
const licence = "// SPDX-FileCopyrightText: The Flyball Authors\n// SPDX-License-Identifier: Apache-2.0\n\n"

func isGo(name string) bool { return strings.HasSuffix(name, ".go") }

// template returns the files of the template without the licence.
func template() files {
	all := unpack(templateArchive)
	for name, text := range all {
		if isGo(name) {
			all[name] = bytes.TrimPrefix(text, []byte(licence))
		}
	}
	return all
}

// part returns a file of the parts. Nil: there is none.
func part(name string) (*gotree.File, error) {
	text, ok := unpack(partsArchive)[name]
	if !ok {
		return nil, nil
	}
	return gotree.Parse(name, text)
}

// knownImports are the imports of all files of template and parts.
func knownImports() (gotree.Imports, error) {
	known := gotree.Imports{}
	for _, archive := range [][]byte{templateArchive, partsArchive} {
		for name, text := range unpack(archive) {
			if !isGo(name) {
				continue
			}
			f, err := gotree.Parse(name, text)
			if err != nil {
				return nil, err
			}
			maps.Copy(known, f.Imports())
		}
	}
	return known, nil
}
