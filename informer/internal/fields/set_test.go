// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fields_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer/internal/fields"
)

func parsed(t testing.TB, paths ...string) *fields.Set {
	t.Helper()
	s, err := fields.Parse(paths...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse_PathsAreCanonical_D4(t *testing.T) {
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{nil, ""},
		{[]string{"metadata.name", "kind"}, ""},
		{[]string{"status.phase", "spec.nodeName", "status.phase"}, "spec.nodeName,status.phase"},
		{[]string{"spec.containers.image", "spec"}, "spec"},
		{[]string{"spec", "spec.containers.image"}, "spec"},
		{[]string{"metadata"}, "metadata"},
		{[]string{"metadata.annotations"}, "metadata.annotations"},
		{[]string{`metadata.annotations.example\.com/a`}, `metadata.annotations.example\.com/a`},
		{[]string{`spec.a\,b.c\\d`}, `spec.a\,b.c\\d`},
	} {
		s := parsed(t, c.paths...)
		if got := s.String(); got != c.want {
			t.Errorf("Parse(%q) is %q, want %q", c.paths, got, c.want)
		}
		again := parsed(t, s.Paths()...)
		if !reflect.DeepEqual(again, s) {
			t.Errorf("Parse of the paths %q of Parse(%q) is another set", s.Paths(), c.paths)
		}
		for _, path := range fields.Always() {
			if !s.Contains(parsed(t, path)) {
				t.Errorf("Parse(%q) does not contain %s", c.paths, path)
			}
		}
	}
	var everything *fields.Set
	if got := everything.String(); got != "*" || everything.Paths() != nil {
		t.Errorf("the nil set is %q with the paths %q, want * without paths", got, everything.Paths())
	}
}

func TestParse_BadPathsNameTheFix_D4(t *testing.T) {
	for path, want := range map[string]string{
		"":                         "name a field",
		".spec":                    "JSON names separated by dots",
		"$.spec":                   "JSON names separated by dots",
		"spec.containers[*].image": "without an index",
		"spec.containers[0].image": "without an index",
		"spec..nodeName":           "single dot",
		"spec.":                    "single dot",
		`spec.a\`:                  "ends in a backslash",
	} {
		if _, err := fields.Parse("spec", path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse of %q: error %v, want one with %q", path, err, want)
		}
	}
}

func TestSet_ChildWalksTheTree_D4(t *testing.T) {
	s := parsed(t, "spec.containers.image", "status")
	spec, keep := s.Child("spec")
	if !keep || spec == nil {
		t.Fatalf("spec is kept %t as %v, want in part", keep, spec)
	}
	containers, keep := spec.Child("containers")
	if !keep || !slices.Equal(containers.Names(), []string{"image"}) {
		t.Errorf("spec.containers keeps %v, want the image", containers.Names())
	}
	if image, keep := containers.Child("image"); !keep || image != nil {
		t.Errorf("spec.containers.image is kept %t as %v, want whole", keep, image)
	}
	if _, keep := spec.Child("nodeName"); keep {
		t.Errorf("spec.nodeName is kept")
	}
	if status, keep := s.Child("status"); !keep || status != nil {
		t.Errorf("status is kept %t as %v, want whole", keep, status)
	}
	if sub, keep := (*fields.Set)(nil).Child("anything"); !keep || sub != nil {
		t.Errorf("the nil set keeps a field %t as %v, want whole", keep, sub)
	}
}

func TestResolve_WrongPathsNameTheNear_D4(t *testing.T) {
	for _, c := range []struct {
		of   any
		path string
		want []string // nil: no error
	}{
		{&corev1.Pod{}, "spec.nodeName", nil},
		{&corev1.Pod{}, "spec.containers.resources.limits", nil},
		{&corev1.Pod{}, "spec.containers.env.valueFrom.fieldRef.fieldPath", nil},
		{&corev1.Pod{}, "metadata.creationTimestamp", nil},
		{&corev1.Pod{}, "status.containerStatuses.state.running.startedAt", nil},
		{&corev1.Pod{}, "spec.volumes.configMap.name", nil}, // of an embedded struct
		{&corev1.Pod{}, "spec.nodename", []string{`"spec.nodename" of v1.Pod`, "did you mean nodeName?"}},
		{&corev1.Pod{}, "spec.contaners.image", []string{`"spec.contaners.image"`, "containers"}},
		{&corev1.Pod{}, "spec.containers.image.tag", []string{"as a whole", `name it without what is below, as "spec.containers.image"`}},
		{&corev1.Pod{}, "metadata.annotations.a", []string{"as a whole", `as "metadata.annotations"`}},
		{&corev1.Pod{}, "metadata.creationTimestamp.seconds", nil}, // always kept, and so covered
		{&corev1.Pod{}, "status.startTime.seconds", []string{"as a whole"}},
		{&corev1.Pod{}, "state", []string{"it has apiVersion, kind, metadata, spec, status"}},
		{&corev1.ConfigMap{}, "spec", []string{"it has apiVersion, binaryData, data, immutable, kind, metadata"}},
		{&unstructured.Unstructured{}, "spec.whatever.it.is", nil},
		{&metav1.PartialObjectMetadata{}, "metadata.annotations", nil},
		{&metav1.PartialObjectMetadata{}, "spec", []string{"no field"}},
	} {
		err := parsed(t, c.path).Resolve(reflect.TypeOf(c.of))
		if c.want == nil {
			if err != nil {
				t.Errorf("Resolve of %q for %T: %v", c.path, c.of, err)
			}
			continue
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Resolve of %q for %T: error %v, want one with %q", c.path, c.of, err, want)
			}
		}
	}
}

// FuzzSet compares Union and Contains with sets of leaves: a tree is the set of
// the paths that it contains among all paths of two letters and three levels.
func FuzzSet_IsASetOfPaths_D4(f *testing.F) {
	f.Add([]byte("a b.a"), []byte("a.b b"))
	f.Add([]byte("a.a.a a.b"), []byte("a"))
	f.Add([]byte(""), []byte("b.b.b"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, y := someSet(t, a), someSet(t, b)
		union := fields.Union(x, y)
		contains := true
		for _, path := range leaves {
			inX, inY := has(x, path), has(y, path)
			if got := has(union, path); got != (inX || inY) {
				t.Errorf("the union of %q and %q has %v: %t", x, y, path, got)
			}
			contains = contains && (inX || !inY)
		}
		if got := x.Contains(y); got != contains {
			t.Errorf("%q contains %q: %t, want %t", x, y, got, contains)
		}
		if !union.Contains(x) || !union.Contains(y) {
			t.Errorf("the union %q does not contain %q and %q", union, x, y)
		}
		if equal := x.Contains(y) && y.Contains(x); equal != (x.String() == y.String()) {
			t.Errorf("%q and %q are equal: %t, but not so their strings", x, y, equal)
		}
	})
}

// leaves are paths so deep that each is kept as a whole or not at all. The
// fourth level tells a leaf from a node with two leaves.
var leaves = func() (out [][]string) {
	for _, a := range []string{"a", "b"} {
		for _, b := range []string{"a", "b", "c"} {
			for _, c := range []string{"a", "b", "c"} {
				out = append(out, []string{a, b, c, "c"})
			}
		}
	}
	return out
}()

func has(s *fields.Set, path []string) bool {
	for _, name := range path {
		sub, keep := s.Child(name)
		if !keep {
			return false
		}
		s = sub
	}
	return s == nil
}

// someSet makes a set from the well-formed words of text.
func someSet(t *testing.T, text []byte) *fields.Set {
	var paths []string
	for _, word := range strings.Fields(string(text)) {
		names := strings.Split(word, ".")
		if len(names) <= 3 && !slices.ContainsFunc(names, func(name string) bool { return name != "a" && name != "b" }) {
			paths = append(paths, word)
		}
	}
	return parsed(t, paths...)
}

func FuzzParse_NeverPanics_D4(f *testing.F) {
	f.Add("spec.nodeName")
	f.Add(`a\.b.c`)
	f.Fuzz(func(t *testing.T, path string) {
		s, err := fields.Parse(path)
		if err != nil {
			return
		}
		if again := parsed(t, s.Paths()...); again.String() != s.String() {
			t.Errorf("%q parses to %q and its paths to %q", path, s, again)
		}
	})
}
