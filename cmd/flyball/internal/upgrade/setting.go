// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"go/build"
	"go/build/constraint"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A setting is what the go command builds for: tags, and a system if it is another one.
type setting struct {
	tags         []string
	goos, goarch string
}

func (s setting) String() string { return s.goos + "/" + s.goarch + " " + strings.Join(s.tags, ",") }

func (s setting) env() []string {
	var env []string
	if s.goos != "" {
		env = append(env, "GOOS="+s.goos, "CGO_ENABLED=0")
	}
	if s.goarch != "" {
		env = append(env, "GOARCH="+s.goarch, "CGO_ENABLED=0")
	}
	return env
}

func (s setting) flags(more ...string) []string {
	if len(s.tags) == 0 {
		return more
	}
	return append([]string{"-tags=" + strings.Join(s.tags, ",")}, more...)
}

// systems and processors that files are commonly for. Others stay unchecked.
var (
	systems    = []string{"linux", "darwin", "windows", "freebsd"}
	processors = []string{"amd64", "arm64"}
)

// settingFor returns a setting that builds a file: with as few tags as possible, on this
// system if that can be.
func (m *module) settingFor(name string) (setting, bool) {
	text, err := m.read(name)
	if err != nil {
		return setting{}, false
	}
	tags := tagsOf(text)
	if slices.Contains(tags, "ignore") { // a program that is run by hand
		return setting{}, false
	}
	oses, archs := inTurn(runtime.GOOS, systems), inTurn(runtime.GOARCH, processors)
	if !bytes.Contains(text, []byte(rootModule)) { // not worth all its dependencies for another system
		oses, archs = oses[:1], archs[:1]
	}
	for _, goos := range oses {
		for _, goarch := range archs {
			for subset := range 1 << min(len(tags), 6) {
				target := build.Default
				target.GOOS, target.GOARCH, target.BuildTags = goos, goarch, nil
				target.OpenFile = m.openFile
				for i, tag := range tags {
					if subset&(1<<i) != 0 {
						target.BuildTags = append(target.BuildTags, tag)
					}
				}
				if ok, err := target.MatchFile(filepath.Split(name)); err == nil && ok {
					s := setting{tags: target.BuildTags}
					if goos != runtime.GOOS {
						s.goos = goos
					}
					if goarch != runtime.GOARCH {
						s.goarch = goarch
					}
					return s, true
				}
			}
		}
	}
	return setting{}, false
}

func inTurn(first string, all []string) []string {
	return append([]string{first}, slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == first })...)
}

// tagsOf returns the tags of a file's constraint that are for people to set.
func tagsOf(text []byte) []string {
	tags := map[string]bool{}
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("package ")) {
			break
		}
		if !constraint.IsGoBuild(string(bytes.TrimSpace(line))) {
			continue
		}
		expr, err := constraint.Parse(string(bytes.TrimSpace(line)))
		if err != nil {
			continue
		}
		expr.Eval(func(tag string) bool { tags[tag] = true; return true })
		expr.Eval(func(tag string) bool { tags[tag] = true; return false })
	}
	maps.DeleteFunc(tags, func(tag string, _ bool) bool {
		return slices.Contains(systems, tag) || slices.Contains(processors, tag) || tag == "cgo" || tag == "unix" || strings.HasPrefix(tag, "go1.")
	})
	return slices.Sorted(maps.Keys(tags))
}
