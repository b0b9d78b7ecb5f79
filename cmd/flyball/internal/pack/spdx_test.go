// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// The test binary is a Go program; its dependencies beside the standard library depend on
// how it was built.
func TestSBOM_DescribesAProgram(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1000000000")
	text, err := sbomOf(program, "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := sbomOf(program, "", time.Time{}); err != nil || !bytes.Equal(again, text) {
		t.Errorf("a second document differs (%v)", err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.SPDXVersion != "SPDX-2.3" || d.DataLicense != "CC0-1.0" || d.CreationInfo.Created != "2001-09-09T01:46:40Z" {
		t.Errorf("the document begins %q, %q, %q", d.SPDXVersion, d.DataLicense, d.CreationInfo.Created)
	}
	ids, names := map[string]bool{}, map[string]string{}
	for _, p := range d.Packages {
		if ids[p.SPDXID] || !regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`).MatchString(p.SPDXID) {
			t.Errorf("the identifier %q is taken or malformed", p.SPDXID)
		}
		ids[p.SPDXID], names[p.Name] = true, p.VersionInfo
	}
	for _, r := range d.Relationships {
		if r.Element != documentID && !ids[r.Element] || !ids[r.Related] {
			t.Errorf("%+v names a package that is missing", r)
		}
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if got, ok := names[m.Path]; !ok || got != m.Version {
			t.Errorf("module %s is at %q in the document, want %s", m.Path, got, m.Version)
		}
	}
	if got := names["stdlib"]; !strings.HasPrefix(info.GoVersion, "go"+got) || got == "" {
		t.Errorf("stdlib is at %q, want that of %s", got, info.GoVersion)
	}
	if sums := d.Packages[0].Checksums; len(sums) != 1 || len(sums[0].Value) != 64 {
		t.Errorf("the program's checksums are %v, want one of SHA-256", sums)
	}
}

func TestSBOM_RefusesWhatIsNoProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, path + "-missing"} {
		if _, err := sbomOf(file, "", time.Time{}); err == nil {
			t.Errorf("%s has a document", file)
		}
	}
}

func TestSBOM_HasTheModulesThatWereBuiltIn(t *testing.T) {
	info := &buildinfo.BuildInfo{
		GoVersion: "go1.26.8", Path: "example.com/operator/cmd", Main: debug.Module{Path: "example.com/operator", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.2.3", Sum: "h1:" + base64.StdEncoding.EncodeToString([]byte("0123"))},
			{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/new", Version: "v2.0.0"}},
			{Path: "example.com/here", Version: "v0.0.0", Replace: &debug.Module{Path: "../here", Version: "(devel)"}},
		},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	}
	d := describe(info, "operator", []byte("bytes"), time.Unix(0, 0))
	var got []string
	for _, p := range d.Packages {
		got = append(got, p.Name+"@"+p.VersionInfo)
	}
	want := "operator@abc+dirty stdlib@1.26.8 example.com/operator@(devel) example.com/a@v1.2.3 example.com/new@v2.0.0 example.com/here@v0.0.0"
	if strings.Join(got, " ") != want {
		t.Errorf("the packages are %v, want %s", got, want)
	}
	a := d.Packages[3]
	if a.ExternalRefs[0].Locator != "pkg:golang/example.com/a@v1.2.3" || !strings.HasSuffix(a.Comment, "30313233") {
		t.Errorf("the module is %+v, want its purl and its checksum", a)
	}
}
