// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package resourcetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/randfill"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/resource"
)

// Options of RoundTrip. The zero value is fit for most kinds.
type Options struct {
	// Seed of the first object. Each further object has the next seed.
	Seed int64
	// Objects is how many objects go each way. Zero: 500.
	Objects int
	// Fill are functions such as func(*v1.Engine, randfill.Continue). Each fills values of
	// one type, where a conversion refuses some values.
	Fill []any
	// Kept are fields that the hub has nothing for, such as spec.host, with the fields in
	// them. Their values are kept in an annotation of the hub.
	Kept []string
}

// RoundTrip fails the test unless random objects are the same after a conversion to the
// other version and back. The hub must be able to express each field of the version, except
// for Options.Kept; fields of the hub alone are kept in an annotation. It reports the
// first problem of each direction.
func RoundTrip[T, Hub resource.Object](t testing.TB, c *resource.Conversion[T, Hub], opts Options) {
	t.Helper()
	version, hub := c.Versions()
	if opts.Objects <= 0 {
		opts.Objects = 500
	}
	there := way[T, Hub]{version.Version, hub.Version, c.ToHub, c.FromHub, opts.Kept}
	back := way[Hub, T]{hub.Version, version.Version, c.FromHub, c.ToHub, nil}
	for _, one := range []func(*randfill.Filler) error{there.expressed, there.trip, back.trip} {
		for seed := opts.Seed; seed < opts.Seed+int64(opts.Objects); seed++ {
			if err := one(filler(seed, opts.Fill)); err != nil {
				t.Errorf("%v\nrepeat it with Options{Seed: %d, Objects: 1}", err, seed)
				break
			}
		}
	}
}

// filler returns what fills objects, those of Kubernetes with values that they may have.
func filler(seed int64, fill []any) *randfill.Filler {
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	f := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), codecs).NumElements(0, 3)
	f.Funcs(func(raw *runtime.RawExtension, c randfill.Continue) {
		raw.Raw = fmt.Appendf(nil, `{"value":%d}`, c.Int31())
	})
	return f.Funcs(fill...)
}

// way is one direction.
type way[A, B resource.Object] struct {
	a, b  string
	there func(A, B) error
	back  func(B, A) error
	kept  []string
}

// expressed returns an error if b cannot express a field of a.
func (w way[A, B]) expressed(f *randfill.Filler) error {
	from, err := random[A](f)
	if err != nil {
		return err
	}
	to := empty[B]()
	if err := w.convert(from, to); err != nil {
		return err
	}
	kept := to.GetAnnotations()[resource.OnlyIn+w.a]
	if kept == "" {
		return nil
	}
	var changes []jsontree.Change
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(kept), &changes); err != nil {
		return fmt.Errorf("the annotation %s%s: %w", resource.OnlyIn, w.a, err)
	}
	for _, c := range changes {
		if !slices.ContainsFunc(w.kept, func(field string) bool { return c.Field() == field || strings.HasPrefix(c.Field(), field+".") }) {
			return fmt.Errorf("%s to %s and back: %s is lost: it was %s, and is %s; set it in both functions, or, if %s has nothing for it, name it in Options.Kept",
				w.a, w.b, c.Field(), text(c.Is), text(c.Was), w.b)
		}
	}
	return nil
}

// trip returns an error if an object differs after it was converted there and back.
func (w way[A, B]) trip(f *randfill.Filler) error {
	from, err := random[A](f)
	if err != nil {
		return err
	}
	to, again := empty[B](), empty[A]()
	if err := w.convert(from, to); err != nil {
		return err
	}
	if err := (way[B, A]{a: w.b, b: w.a, there: w.back}).convert(to, again); err != nil {
		return err
	}
	return w.same("and back", from, again)
}

// convert calls the function of one direction, which must leave its first argument.
func (w way[A, B]) convert(from A, to B) error {
	before, err := json.Marshal(from)
	if err != nil {
		return err
	}
	if err := w.there(from, to); err != nil {
		return fmt.Errorf("%s to %s: %w; if this value is never stored, fill its type by Options.Fill", w.a, w.b, err)
	}
	after, err := json.Marshal(from)
	if err == nil && !bytes.Equal(before, after) {
		err = fmt.Errorf("%s to %s changes the object that it converts; change only the second argument", w.a, w.b)
	}
	return err
}

// same returns an error that names the first field that differs.
func (w way[A, B]) same(how string, want, got A) error {
	trees := [2]map[string]any{}
	for i, obj := range []A{want, got} {
		var err error
		if trees[i], err = jsontree.Of[map[string]any](obj); err != nil {
			return err
		}
	}
	for _, c := range jsontree.Diff(trees[0], trees[1]) {
		return fmt.Errorf("%s to %s %s: %s was %s, and is %s; a function must give the same for the same object, and change no metadata but labels and annotations",
			w.a, w.b, how, c.Field(), text(c.Was), text(c.Is))
	}
	return nil
}

func empty[T resource.Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

// random returns an object as a server would send it.
func random[T resource.Object](f *randfill.Filler) (T, error) {
	filled, decoded := empty[T](), empty[T]()
	f.Fill(filled)
	text, err := json.Marshal(filled)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, decoded)
	}
	if err != nil {
		return decoded, fmt.Errorf("a random %T has no JSON: %w; fill the type by Options.Fill", filled, err)
	}
	return decoded, nil
}

// text returns a value for a message.
func text(value any) string {
	if value == nil {
		return "absent"
	}
	out, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	const most = 200
	if len(out) > most {
		return string(out[:most]) + "…"
	}
	return string(out)
}
