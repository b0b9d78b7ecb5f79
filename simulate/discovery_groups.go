// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// servedGroup is a group in the versions that are served, the preferred one
// first.
type servedGroup struct {
	name     string
	versions []servedVersion
}

// servedVersion is the kinds of one group and version, by their names.
type servedVersion struct {
	schema.GroupVersion
	kinds []*Kind
}

func (v servedVersion) path() string { return groupPath(v.GroupVersion) }

// builtin reports whether some of the kinds are built in.
func (v servedVersion) builtin() bool {
	return slices.ContainsFunc(v.kinds, func(k *Kind) bool { return k.place > 0 })
}

// groupAt is the group that a path is of; false: of none.
func groupAt(path string) (string, bool) {
	if below, ok := strings.CutPrefix(path, "/apis/"); ok {
		name, _, _ := strings.Cut(below, "/")
		return name, name != ""
	}
	return "", strings.HasPrefix(path, "/api/")
}

// groups are what is served, in the order in which a real server tells of it:
// first what is built in, then all else by name. Of versions that are not
// ordered otherwise the stable and the new ones come first.
func (s *Server) groups() []servedGroup {
	return grouped(s.served(func(*Kind) bool { return true }))
}

func grouped(kinds []*Kind) (out []servedGroup) {
	place := map[string]int{}
	for _, k := range kinds {
		if k.place > 0 && (place[k.Group] == 0 || k.place < place[k.Group]) {
			place[k.Group] = k.place
		}
	}
	last := len(kinds) + 1
	slices.SortFunc(kinds, func(a, b *Kind) int {
		return cmp.Or(
			cmp.Compare(cmp.Or(place[a.Group], last), cmp.Or(place[b.Group], last)),
			cmp.Compare(a.Group, b.Group),
			compareVersions(a, b),
			cmp.Compare(a.Resource, b.Resource),
		)
	})
	for _, k := range kinds {
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

// compareVersions orders two kinds of one group by their versions. The newest
// built-in version is the preferred one, and a custom version comes before all.
func compareVersions(a, b *Kind) int {
	if a.Version == b.Version {
		return 0
	}
	return cmp.Or(cmp.Compare(min(a.place, 1), min(b.place, 1)), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
}

// served are the kinds that are asked for, in no order.
func (s *Server) served(asked func(*Kind) bool) (out []*Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.mu.kinds {
		if asked(k) {
			out = append(out, k)
		}
	}
	return out
}
