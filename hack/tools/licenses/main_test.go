// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// look reads a module of these files, as needed by its package a/b.
func look(t *testing.T, files map[string]string) *linked {
	t.Helper()
	top := t.TempDir()
	for name, text := range files {
		name = filepath.Join(top, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	l := &linked{path: "example.com/m", by: ".", licences: map[string]string{}, looked: map[string]bool{}}
	l.look(filepath.Join(top, "a", "b"), top)
	return l
}

func TestLook_TheClosestLicenceCounts(t *testing.T) {
	apache, err := os.ReadFile("../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	const isc = "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, " +
		"provided that the above copyright notice and this permission notice appear in all copies.\n\nTHE SOFTWARE IS PROVIDED \"AS IS\" AND THE " +
		"AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO " +
		"EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM " +
		"LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION " +
		"WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.\n"
	for _, c := range []struct {
		name     string
		files    map[string]string
		licence  string
		problems int
	}{
		{"at the top", map[string]string{"LICENSE": string(apache), "a/b/b.go": ""}, "Apache-2.0", 0},
		{"of the package", map[string]string{"LICENSE": string(apache), "a/LICENCE.md": isc, "a/b/b.go": ""}, "ISC", 0},
		{"unknown", map[string]string{"COPYING": "All rights reserved. " + strings.Repeat("You may look at it. ", 20), "a/b/b.go": ""}, "", 1},
		{"none", map[string]string{"license.go": "", "a/b/b.go": ""}, "", 1},
	} {
		l := look(t, c.files)
		if len(l.problems) != c.problems || len(l.licences) > 1 || c.licence != "" && l.licences[c.licence] == "" {
			t.Errorf("%s: licences %v, problems %v; want %q and %d problems", c.name, l.licences, l.problems, c.licence, c.problems)
		}
	}
}

func TestRun_ItsOwnModuleIsRight(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"-list", "."}, &out); err != nil || !strings.Contains(out.String(), "licensecheck@v0.3.1 BSD-3-Clause") {
		t.Errorf("%v, prints\n%s\nwant licensecheck's licence", err, &out)
	}
	if err := run(nil, io.Discard); err == nil {
		t.Error("without directories: no error")
	}
}
