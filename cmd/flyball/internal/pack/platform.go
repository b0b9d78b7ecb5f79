// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"slices"
	"strings"
)

// goPlatform is what a program is built for.
type goPlatform struct {
	OS, Architecture, Variant string
}

// String returns linux/amd64 or linux/arm/v7.
func (p goPlatform) String() string {
	if p.Variant == "" {
		return p.OS + "/" + p.Architecture
	}
	return p.OS + "/" + p.Architecture + "/" + p.Variant
}

// variants are the variables of the go command for variants of architectures.
var variants = map[string]struct {
	variable string
	trimmed  bool // v7 is 7
	known    []string
}{
	"amd64": {"GOAMD64", false, []string{"v1", "v2", "v3", "v4"}},
	"arm":   {"GOARM", true, []string{"v5", "v6", "v7"}},
}

// env is the environment for the go command.
func (p goPlatform) env() []string {
	env := []string{"GOOS=" + p.OS, "GOARCH=" + p.Architecture}
	if v := variants[p.Architecture]; p.Variant != "" {
		value := p.Variant
		if v.trimmed {
			value = strings.TrimPrefix(value, "v")
		}
		env = append(env, v.variable+"="+value)
	}
	return env
}

// parsePlatforms reads a list such as linux/amd64,linux/arm64. The platforms are sorted, so
// that their order does not matter.
func parsePlatforms(list string) ([]goPlatform, error) {
	var out []goPlatform
	for one := range strings.SplitSeq(list, ",") {
		parts := strings.Split(strings.TrimSpace(one), "/")
		if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
			return nil, fmt.Errorf("-platform %q: %q is no platform; write linux/amd64, or linux/amd64,linux/arm64", list, one)
		}
		p := goPlatform{OS: parts[0], Architecture: parts[1]}
		if p.OS != "linux" {
			return nil, fmt.Errorf("-platform %q: an image without a base is for linux, and %q is not; write linux/%s", list, one, p.Architecture)
		}
		if len(parts) == 3 {
			p.Variant = parts[2]
			if !slices.Contains(variants[p.Architecture].known, p.Variant) {
				return nil, fmt.Errorf("-platform %q: %s has the variants %v, and %q is none; leave it out", list, p.Architecture, variants[p.Architecture].known, p.Variant)
			}
		}
		if slices.Contains(out, p) {
			return nil, fmt.Errorf("-platform %q names %s twice; name it once", list, p)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b goPlatform) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}
