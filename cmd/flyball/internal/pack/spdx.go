// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// sbomOf returns the software bill of materials of the Go program in a file, as SPDX 2.3 in JSON: the
// modules that the go command has recorded in it, with their versions and checksums. commit is that of a program without
// one in its build information; at is the time of the document. Zero: that of the commit in
// the build information, or $SOURCE_DATE_EPOCH.
func sbomOf(file, commit string, at time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the build information of %s: %w; it must be a Go program", file, err)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if at.IsZero() {
		if at, err = created(info); err != nil {
			return nil, err
		}
	}
	if commit != "" && setting(info, "vcs.revision") == "" {
		info.Settings = append(info.Settings, debug.BuildSetting{Key: "vcs.revision", Value: commit})
	}
	text, err := json.MarshalIndent(describe(info, filepath.Base(file), program, at), "", "  ")
	return append(text, '\n'), err
}

// created returns the time of the document.
func created(info *buildinfo.BuildInfo) (time.Time, error) {
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		return time.Unix(seconds, 0), nil
	}
	if at, err := time.Parse(time.RFC3339, setting(info, "vcs.time")); err == nil {
		return at, nil
	}
	return time.Unix(0, 0), nil // SPDX requires a time, and none is known
}

// document is one of SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/).
type document struct {
	SPDXVersion       string         `json:"spdxVersion"`
	DataLicense       string         `json:"dataLicense"`
	SPDXID            string         `json:"SPDXID"`
	Name              string         `json:"name"`
	DocumentNamespace string         `json:"documentNamespace"`
	CreationInfo      creation       `json:"creationInfo"`
	Packages          []spdxPackage  `json:"packages"`
	Relationships     []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	SPDXID           string        `json:"SPDXID"`
	Name             string        `json:"name"`
	VersionInfo      string        `json:"versionInfo,omitempty"`
	DownloadLocation string        `json:"downloadLocation"`
	FilesAnalyzed    bool          `json:"filesAnalyzed"`
	LicenseConcluded string        `json:"licenseConcluded"`
	LicenseDeclared  string        `json:"licenseDeclared"`
	CopyrightText    string        `json:"copyrightText"`
	PrimaryPurpose   string        `json:"primaryPackagePurpose,omitempty"`
	Checksums        []checksum    `json:"checksums,omitempty"`
	ExternalRefs     []externalRef `json:"externalRefs,omitempty"`
	Comment          string        `json:"comment,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type externalRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

const (
	documentID = "SPDXRef-DOCUMENT"
	programID  = "SPDXRef-Program"
	unknown    = "NOASSERTION"
)

// describe returns the document of a program called name with these bytes.
func describe(info *buildinfo.BuildInfo, name string, file []byte, at time.Time) document {
	digest := sha256.Sum256(file)
	sum := hex.EncodeToString(digest[:])
	program := spdxPackage{
		SPDXID: programID, Name: name, VersionInfo: version(info), DownloadLocation: unknown,
		LicenseConcluded: unknown, LicenseDeclared: unknown, CopyrightText: unknown, PrimaryPurpose: "APPLICATION",
		Checksums: []checksum{{"SHA256", sum}},
		Comment:   fmt.Sprintf("built of %s with %s for %s/%s", info.Path, info.GoVersion, setting(info, "GOOS"), setting(info, "GOARCH")),
	}
	d := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: documentID, Name: name,
		DocumentNamespace: "https://github.com/flyball-dev/flyball/sbom/" + name + "-" + sum,
		CreationInfo:      creation{at.UTC().Format(time.RFC3339), []string{"Tool: flyball-pack"}},
		Packages:          []spdxPackage{program},
		Relationships:     []relationship{{documentID, "DESCRIBES", programID}},
	}
	add := func(p spdxPackage) {
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, relationship{programID, "CONTAINS", p.SPDXID})
	}
	add(modulePackage(debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}))
	if info.Main.Path != "" {
		add(modulePackage(info.Main))
	}
	for _, m := range info.Deps {
		if m.Replace != nil && !strings.HasPrefix(m.Replace.Path, ".") && !filepath.IsAbs(m.Replace.Path) { // not a directory
			m = m.Replace
		}
		add(modulePackage(*m))
	}
	return d
}

// modulePackage describes a module of the program.
func modulePackage(m debug.Module) spdxPackage {
	p := spdxPackage{
		SPDXID: "SPDXRef-Module-" + regexp.MustCompile(`[^A-Za-z0-9.-]`).ReplaceAllString(m.Path+"-"+m.Version, "-"),
		Name:   m.Path, VersionInfo: m.Version, DownloadLocation: unknown,
		LicenseConcluded: unknown, LicenseDeclared: unknown, CopyrightText: unknown, PrimaryPurpose: "LIBRARY",
		ExternalRefs: []externalRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + cmp.Or(m.Version, "(devel)")}},
	}
	if encoded, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		// h1 is a SHA-256 of the module's files and their names, not of an archive.
		if raw, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			p.Comment = "go.sum h1, as hexadecimal digits: " + hex.EncodeToString(raw)
		}
	}
	return p
}

// version returns the version of the main module, or the commit.
func version(info *buildinfo.BuildInfo) string {
	v := info.Main.Version
	if revision := setting(info, "vcs.revision"); v == "" || v == "(devel)" {
		v = cmp.Or(revision, v)
	}
	if setting(info, "vcs.modified") == "true" && !strings.Contains(v, "dirty") {
		v += "+dirty"
	}
	return v
}

func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
