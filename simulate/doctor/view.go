// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// view is what several runs of a walk without faults have in common. Where these differ, a run with faults may
// differ too.
type view struct {
	stable   map[ref]bool    // names that are the same in each run
	prefixes map[string]bool // of names that are not, by kind and namespace: "Pod default/web-"
	masks    map[string]bool // "object path" of fields that differ, and "object" of objects that are not always there
}

// learn returns the view of reference runs, of which there is at least one.
func learn(runs []*trial) *view {
	v := &view{stable: map[ref]bool{}, prefixes: map[string]bool{}, masks: map[string]bool{}}
	times := map[ref]int{}
	for _, t := range runs {
		for of := range t.everything() {
			times[of]++
		}
		for _, all := range append(slices.Clone(t.ends), t.last) {
			v.learnGenerated(all)
		}
	}
	for of, n := range times {
		prefix, ok := prefixOf(of.Key)
		switch {
		case ok && v.prefixes[of.Kind+" "+prefix]:
		case n == len(runs):
			v.stable[of] = true
		case ok:
			v.prefixes[of.Kind+" "+prefix] = true
		}
	}
	first := runs[0]
	for _, t := range runs[1:] {
		v.mask(first.last, t.last)
		for i := range min(len(first.ends), len(t.ends)) {
			v.mask(first.ends[i], t.ends[i])
		}
	}
	return v
}

// generated is how many characters the server adds to generateName.
const generated = 5

// learnGenerated learns the prefixes of names that the server has generated. Those of two runs may be the same by chance.
func (v *view) learnGenerated(all objects) {
	for of, tree := range all {
		metadata, _ := tree["metadata"].(map[string]any)
		generate, _ := metadata["generateName"].(string)
		if prefix, ok := prefixOf(of.Key); ok && generate != "" && strings.HasSuffix(prefix, generate) && len(of.Key) == len(prefix)+generated {
			v.prefixes[of.Kind+" "+prefix] = true
		}
	}
}

// with returns what v knows, and the names of another walk's only run that have none of v's prefixes.
func (v *view) with(one *view) *view {
	out := &view{stable: maps.Clone(v.stable), prefixes: v.prefixes, masks: v.masks}
	for of := range one.stable {
		if !strings.HasSuffix(v.name(of), "*") {
			out.stable[of] = true
		}
	}
	return out
}

// everything returns the names of all objects that there ever were.
func (t *trial) everything() map[ref]bool {
	all := map[ref]bool{}
	for _, c := range t.changes {
		all[c.Of] = true
	}
	for of := range t.last {
		all[of] = true
	}
	return all
}

// prefixOf returns a name without its last part.
func prefixOf(key string) (prefix string, ok bool) {
	at := strings.LastIndex(key, "-")
	if at < 0 || at < strings.Index(key, "/") {
		return "", false
	}
	return key[:at+1], true
}

// name returns what an object is compared as: its name, or what generated names have in common. It is empty
// for objects that are not compared.
func (v *view) name(of ref) string {
	if ignored(of.Kind) {
		return ""
	}
	if v.stable[of] {
		return of.String()
	}
	for prefix, ok := prefixOf(of.Key); ok; prefix, ok = prefixOf(strings.TrimSuffix(prefix, "-")) {
		if v.prefixes[of.Kind+" "+prefix] {
			return of.Kind + " " + prefix + "*"
		}
	}
	return of.String()
}

// compared is what objects of one name are compared as.
type compared struct {
	of    ref // one of them
	flats []flat
}

// compare returns the objects of a moment by the names that they are compared as.
func (v *view) compare(all objects) map[string]compared {
	rename := v.renames(all)
	out := map[string]compared{}
	for _, of := range sortedRefs(all) {
		name, fields := v.name(of), flat{}
		switch {
		case name == "":
			continue
		case isHistory(of.Kind): // its numbers and names differ with the way to a state, but not how much of it there is
			name = of.Kind + " of " + ownerOf(all[of])
		default:
			fields = flatten(all[of], rename)
		}
		c := out[name]
		c.of = of
		c.flats = append(c.flats, fields)
		out[name] = c
	}
	for name, c := range out {
		if len(c.flats) > 1 {
			sort.SliceStable(c.flats, func(i, j int) bool { return v.text(name, c.flats[i]) < v.text(name, c.flats[j]) })
		}
	}
	return out
}

// ownerOf names the object that controls another one.
func ownerOf(tree map[string]any) string {
	if owner := metav1.GetControllerOf(&unstructured.Unstructured{Object: tree}); owner != nil {
		return owner.Kind + " " + owner.Name
	}
	return "nobody"
}

// text orders objects of one name.
func (v *view) text(name string, f flat) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(f)) {
		if !v.masked(name)(anywhere(path)) {
			fmt.Fprintln(&b, path, f[path])
		}
	}
	return b.String()
}

// renames returns a function that replaces UIDs and generated names in texts.
func (v *view) renames(all objects) func(string) string {
	var pairs []string
	for _, of := range sortedRefs(all) {
		metadata, _ := all[of]["metadata"].(map[string]any)
		if uid, _ := metadata["uid"].(string); uid != "" {
			pairs = append(pairs, uid, "UID of "+v.name(of))
		}
	}
	for _, of := range sortedRefs(all) {
		if name := v.name(of); strings.HasSuffix(name, "*") {
			_, was, _ := strings.Cut(of.Key, "/")
			_, is, _ := strings.Cut(name, "/")
			pairs = append(pairs, cmp.Or(was, of.Key), cmp.Or(is, name))
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

func sortedRefs(all objects) []ref {
	return slices.SortedFunc(maps.Keys(all), func(a, b ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(len(b.Key), len(a.Key)), cmp.Compare(a.Key, b.Key))
	})
}

func (v *view) mask(a, b objects) {
	if a == nil || b == nil {
		return
	}
	x, y := v.compare(a), v.compare(b)
	for name, c := range x {
		if len(c.flats) != len(y[name].flats) {
			v.masks[name] = true
			continue
		}
		for i := range c.flats {
			for _, d := range differ(c.flats[i], y[name].flats[i], func(string) bool { return false }) {
				v.masks[name+" "+anywhere(d.Path)] = true
			}
		}
	}
	for name := range y {
		if _, there := x[name]; !there {
			v.masks[name] = true
		}
	}
}

// masked returns which fields of the objects of a name are not compared.
func (v *view) masked(name string) func(path string) bool {
	return func(path string) bool { return v.masks[name+" "+path] }
}

// unlike is an object that is not as it would be.
type unlike struct {
	name   string
	of     ref
	extra  int // so many objects too many; below 0: too few
	fields []difference
}

func (u unlike) String() string {
	switch {
	case u.extra > 0 && isHistory(u.of.Kind):
		return fmt.Sprintf("%s is more by %d, such as %s", u.name, u.extra, u.of.Key)
	case u.extra > 0:
		return fmt.Sprintf("%s is there, and would not be", u.name)
	case u.extra < 0:
		return fmt.Sprintf("%s is missing", u.name)
	}
	texts := make([]string, 0, len(u.fields))
	for _, d := range u.fields {
		texts = append(texts, d.String())
	}
	return fmt.Sprintf("of %s: %s", u.name, strings.Join(texts, "; "))
}

// unlike returns in what the objects got differ from want.
func (v *view) unlike(want, got objects) (out []unlike) {
	x, y := v.compare(want), v.compare(got)
	names := map[string]bool{}
	for name := range x {
		names[name] = true
	}
	for name := range y {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if v.masks[name] {
			continue
		}
		a, b := x[name], y[name]
		u := unlike{name: name, of: b.of, extra: len(b.flats) - len(a.flats)}
		if len(b.flats) == 0 {
			u.of = a.of
		}
		if u.extra == 0 {
			for i := range a.flats {
				u.fields = append(u.fields, withoutFalse(differ(a.flats[i], b.flats[i], v.masked(name)))...)
			}
		}
		if u.extra != 0 || len(u.fields) > 0 {
			out = append(out, u)
		}
	}
	return out
}
