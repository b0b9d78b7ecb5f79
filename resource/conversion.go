// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/internal/jsontree"
)

// OnlyIn and the name of a version is the annotation that keeps what only that version can
// express: a JSON list of fields.
const OnlyIn = "flyball.dev/only-in-"

// Object is a pointer to a struct that embeds metav1.ObjectMeta.
type Object interface {
	metav1.Object
	GetObjectMeta() metav1.Object
}

// Conversion converts objects between a version T of a kind and its hub, the version that
// all others convert to and from. Make one with Convert. Its methods are what webhook.Spoke
// takes. Immutable and safe for concurrent use.
type Conversion[T, Hub Object] struct {
	version, hub schema.GroupVersion
	toHub        func(from T, to Hub) error
	fromHub      func(from Hub, to T) error
	err          error // misuse
}

// Convert returns the conversion between T in version and Hub in hub. Each function sets in
// its second argument what it can express of the first. The metadata is there already;
// other changes than to labels and annotations have no effect. A function must give the
// same for the same object, and change only its second argument, which may share memory
// with the first.
//
// Convert never fails: ToHub and FromHub return what is wrong with its arguments.
func Convert[T, Hub Object](version, hub schema.GroupVersion, toHub func(from T, to Hub) error, fromHub func(from Hub, to T) error) *Conversion[T, Hub] {
	c := &Conversion[T, Hub]{version: version, hub: hub, toHub: toHub, fromHub: fromHub}
	var err error
	switch {
	case toHub == nil || fromHub == nil:
		err = errors.New("a function is nil; give one for each direction")
	case version.Group != hub.Group:
		err = fmt.Errorf("the groups %q and %q differ, and a kind has one group; give versions of one", version.Group, hub.Group)
	case version.Version == "" || hub.Version == "" || version == hub:
		err = errors.New("give two versions, such as v1beta1 and v1")
	default:
		err = errors.Join(hasMetadata[T](), hasMetadata[Hub]())
	}
	if err != nil {
		c.err = fmt.Errorf("convert between %s and %s: %w", version, hub, err)
	}
	return c
}

// hasMetadata returns an error unless the metadata of a T is a metav1.ObjectMeta.
func hasMetadata[T Object]() error {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("%v is no pointer to a struct", t)
	}
	if f, ok := t.Elem().FieldByName("ObjectMeta"); !ok || f.Type != reflect.TypeFor[metav1.ObjectMeta]() {
		return fmt.Errorf("%v does not embed metav1.ObjectMeta", t)
	}
	return nil
}

// Versions returns the version and that of the hub.
func (c *Conversion[T, Hub]) Versions() (version, hub schema.GroupVersion) { return c.version, c.hub }

// ToHub sets to, an empty object, to the hub's form of from, with its metadata. What the hub
// cannot express is kept in an annotation of to. It returns the error of the function given
// to Convert.
func (c *Conversion[T, Hub]) ToHub(from T, to Hub) error {
	if c.err != nil {
		return c.err
	}
	return way[T, Hub]{c.toHub, c.fromHub, OnlyIn + c.version.Version, OnlyIn + c.hub.Version}.convert(from, to)
}

// FromHub is the inverse of ToHub.
func (c *Conversion[T, Hub]) FromHub(from Hub, to T) error {
	if c.err != nil {
		return c.err
	}
	return way[Hub, T]{c.fromHub, c.toHub, OnlyIn + c.hub.Version, OnlyIn + c.version.Version}.convert(from, to)
}

// way is one direction of a conversion.
type way[A, B Object] struct {
	there        func(A, B) error
	back         func(B, A) error
	onlyA, onlyB string // annotations
}

func (w way[A, B]) convert(from A, to B) error {
	giveMetadata(from, to)
	if err := w.there(from, to); err != nil {
		return err
	}
	annotations := maps.Clone(to.GetAnnotations())
	delete(annotations, w.onlyA)
	delete(annotations, w.onlyB)
	to.SetAnnotations(annotations)
	if kept := from.GetAnnotations()[w.onlyB]; kept != "" {
		restore(to, kept)
	}
	kept, err := w.lost(from, to)
	if err != nil || kept == "" {
		return err
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[w.onlyA] = kept
	to.SetAnnotations(annotations)
	return nil
}

// giveMetadata gives to the metadata of from. What functions may change is its own.
func giveMetadata(from, to Object) {
	*metaOf(to) = *metaOf(from)
	to.SetLabels(maps.Clone(from.GetLabels()))
	to.SetAnnotations(maps.Clone(from.GetAnnotations()))
}

func metaOf(obj Object) *metav1.ObjectMeta { return obj.GetObjectMeta().(*metav1.ObjectMeta) }

// lost returns what of from the way back from to does not give. Empty: nothing is lost.
func (w way[A, B]) lost(from A, to B) (string, error) {
	again := reflect.New(reflect.TypeFor[A]().Elem()).Interface().(A)
	giveMetadata(to, again)
	if w.back(to, again) != nil {
		return "", nil // the way back is an error, so nothing can be lost on it
	}
	if reflect.DeepEqual(content(from), content(again)) {
		return "", nil
	}
	was, err := treeOf(again)
	if err != nil {
		return "", err
	}
	is, err := treeOf(from)
	if err != nil {
		return "", err
	}
	changes := jsontree.Diff(was, is)
	if len(changes) == 0 {
		return "", nil
	}
	text, err := json.Marshal(changes)
	if err != nil {
		return "", fmt.Errorf("keep what a version cannot express: %w", err)
	}
	return string(text), nil
}

// content returns the struct of an object without its kind and metadata.
func content(obj Object) any {
	out := reflect.New(reflect.TypeOf(obj).Elem()).Elem()
	out.Set(reflect.ValueOf(obj).Elem())
	for _, name := range []string{"TypeMeta", "ObjectMeta"} {
		if f := out.FieldByName(name); f.IsValid() {
			f.SetZero()
		}
	}
	return out.Interface()
}

// treeOf returns the JSON of an object without its kind and metadata.
func treeOf(obj Object) (map[string]any, error) {
	tree, err := jsontree.Of[map[string]any](obj)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(tree, name)
	}
	withoutNulls(tree)
	return tree, nil
}

// withoutNulls removes the null fields of objects: they are the same as absent ones.
func withoutNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if inner == nil {
				delete(value, name)
			}
			withoutNulls(inner)
		}
	case []any:
		for _, inner := range value {
			withoutNulls(inner)
		}
	}
}

// restore sets the fields of obj that were kept and whose value is what it was then. Clients
// can write the annotation: what is not a list of changes, or does not decode, is left out,
// because an object that does not convert could not be read at all.
func restore(obj Object, kept string) {
	var changes []jsontree.Change
	if kjson.UnmarshalCaseSensitivePreserveInts([]byte(kept), &changes) != nil {
		return
	}
	if set(obj, changes) != nil {
		for i := range changes {
			_ = set(obj, changes[i:i+1]) // without those that do not decode
		}
	}
}

// set makes changes in the content of an object. If the result does not decode, it returns
// an error and leaves the object.
func set(obj Object, changes []jsontree.Change) error {
	tree, err := treeOf(obj)
	if err != nil || jsontree.Apply(tree, changes) == 0 {
		return err
	}
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(tree, name) // they are no content
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	out := reflect.New(reflect.TypeOf(obj).Elem())
	if err := decodelimit.CostlyPlanOf(out.Type()).JSON(text); err != nil {
		return err // the annotation is anyone's
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, out.Interface()); err != nil {
		return err
	}
	in := reflect.ValueOf(obj).Elem()
	for _, name := range []string{"TypeMeta", "ObjectMeta"} {
		if f := out.Elem().FieldByName(name); f.IsValid() {
			f.Set(in.FieldByName(name))
		}
	}
	in.Set(out.Elem())
	return nil
}
