// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
)

// servedGroup is a group with its served versions, the preferred one first.
type servedGroup struct {
	name     string
	versions []servedVersion
}

// servedVersion has the kinds of one group and version, by name.
type servedVersion struct {
	schema.GroupVersion
	kinds []*kinds.Kind
}

func (v servedVersion) path() string { return kinds.GroupPath(v.GroupVersion) }

// builtin reports whether some of the kinds are built in.
func (v servedVersion) builtin() bool {
	return slices.ContainsFunc(v.kinds, func(k *kinds.Kind) bool { return k.Place > 0 })
}

// groupAt returns the group of a path, and whether it has one.
func groupAt(path string) (string, bool) {
	if below, ok := strings.CutPrefix(path, "/apis/"); ok {
		name, _, _ := strings.Cut(below, "/")
		return name, name != ""
	}
	return "", strings.HasPrefix(path, "/api/")
}

// groups returns what is served, in the order of a real server: first the built-in groups,
// then all others by name. Versions without a fixed order are sorted by stability, then the
// newest first.
func (x *Index) groups() []servedGroup {
	return grouped(x.Kinds.Served(func(*kinds.Kind) bool { return true }))
}

func grouped(all []*kinds.Kind) (out []servedGroup) {
	place := map[string]int{}
	for _, k := range all {
		if k.Place > 0 && (place[k.Group] == 0 || k.Place < place[k.Group]) {
			place[k.Group] = k.Place
		}
	}
	last := len(all) + 1
	slices.SortFunc(all, func(a, b *kinds.Kind) int {
		return cmp.Or(
			cmp.Compare(cmp.Or(place[a.Group], last), cmp.Or(place[b.Group], last)),
			cmp.Compare(a.Group, b.Group),
			compareVersions(a, b),
			cmp.Compare(a.Resource, b.Resource),
		)
	})
	for _, k := range all {
		if n := len(out); n == 0 || out[n-1].name != k.Group {
			out = append(out, servedGroup{name: k.Group})
		}
		g := &out[len(out)-1]
		if n := len(g.versions); n == 0 || g.versions[n-1].GroupVersion != k.GroupVersion() {
			g.versions = append(g.versions, servedVersion{GroupVersion: k.GroupVersion()})
		}
		v := &g.versions[len(g.versions)-1]
		v.kinds = append(v.kinds, k)
	}
	return out
}

// compareVersions orders two kinds of one group by their versions. The newest built-in
// version is preferred; a custom version precedes all built-in ones.
func compareVersions(a, b *kinds.Kind) int {
	if a.Version == b.Version {
		return 0
	}
	return cmp.Or(cmp.Compare(min(a.Place, 1), min(b.Place, 1)), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
}
