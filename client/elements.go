// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/kube"
)

// A merge patch replaces a list as a whole, and so removes the fields of its elements that the
// Go type does not know. A change of such a list is therefore sent as changes of its elements:
//
//	which element became which (match)?
//	   certain    ──▶ a JSON patch to the version that was read (operations)
//	   uncertain  ──▶ read the object (edit): a merge patch if its elements have no other
//	                  fields, else an UnknownFieldsError

// UnknownFieldsError reports that the change of a list in a typed object does not show which
// of the elements became which, and that elements may have fields that the Go type does not
// know. Replacing the list would remove these from the server. Nothing was sent.
type UnknownFieldsError struct {
	Kind schema.GroupVersionKind
	Key  kube.Key
	List string // path of the list

	fix string
}

func (e *UnknownFieldsError) Error() string {
	return fmt.Sprintf("the change of the list %s does not show which of its elements became which, and the Go type may not know all of their fields, "+
		"which the patch would remove; %s", e.List, e.fix)
}

const (
	fixUnsure = "use PatchChanges, which reads the object to decide"
	fixLoss   = "change the object as an *unstructured.Unstructured, or send a JSONPatch"
)

// elementsChange reports whether the difference concerns a list of objects or lists that is not
// empty before or after.
func elementsChange(before, after any) bool {
	switch b := before.(type) {
	case map[string]any:
		a, _ := after.(map[string]any)
		for name, field := range b {
			if elementsChange(field, a[name]) {
				return true
			}
		}
	case []any:
		a, _ := after.([]any)
		return len(a) > 0 && slices.ContainsFunc(b, composite) && !reflect.DeepEqual(before, after)
	}
	return false
}

func composite(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// Fields that identify an element of a list: an element with another value is another one.
// With those of places, an element may also have been moved.
var (
	identities = [...]string{"uid", "name", "type", "key", "id"}
	places     = [...]string{"mountPath", "devicePath", "containerPort", "port", "ip", "path", "topologyKey"}
)

// match returns for each element of after which one of before it was; -1: it is new. certain
// is false if the lists do not show that.
func match(before, after []any) (origins []int, certain bool) {
	for _, name := range identities {
		if origins, _, ok := matchBy(name, before, after); ok {
			return origins, true
		}
	}
	for _, name := range places {
		if origins, renamed, ok := matchBy(name, before, after); ok && !renamed {
			return origins, true
		}
	}
	b, uniqueB := index(before)
	a, uniqueA := index(after)
	if inPlace(before, after, b, a) {
		for i := range after {
			origins = append(origins, i)
		}
		return origins, true
	}
	found := 0
	for _, element := range after {
		origin, was := b[text(element)]
		if !was {
			origin = -1
		} else {
			found++
		}
		origins = append(origins, origin)
	}
	return origins, uniqueA && uniqueB && (found == len(before) || found == len(after))
}

// matchBy is match by the value of a field that each element has, and no two the same. renamed
// reports whether there are both old values without a new element and the reverse.
func matchBy(name string, before, after []any) (origins []int, renamed, ok bool) {
	was, ok := values(name, before)
	is, okAfter := values(name, after)
	if !ok || !okAfter {
		return nil, false, false
	}
	found := 0
	origins = make([]int, len(after))
	for value, i := range is {
		origin, known := was[value]
		if !known {
			origin = -1
		} else {
			found++
		}
		origins[i] = origin
	}
	return origins, found < len(before) && found < len(after), true
}

// values returns which element has which value of a field; not ok if that identifies none.
func values(name string, list []any) (at map[any]int, ok bool) {
	at = make(map[any]int, len(list))
	for i, element := range list {
		fields, _ := element.(map[string]any)
		switch fields[name].(type) {
		case string, int64, float64:
		default:
			return nil, false
		}
		if _, twice := at[fields[name]]; twice || fields[name] == "" {
			return nil, false
		}
		at[fields[name]] = i
	}
	return at, true
}

func text(element any) string {
	data, _ := json.Marshal(element) // of JSON values
	return string(data)
}

// index returns where each element is, and whether no two are equal.
func index(list []any) (at map[string]int, unique bool) {
	at = make(map[string]int, len(list))
	for i, element := range list {
		at[text(element)] = i
	}
	return at, len(at) == len(list)
}

// inPlace reports whether each element that differs is a change of the one at its place: it has
// a value in common with it, and none that another one has lost, and neither is equal to one at
// another place.
func inPlace(before, after []any, inBefore, inAfter map[string]int) bool {
	if len(before) != len(after) {
		return false
	}
	lost := map[string]bool{} // fields, with their values
	for i := range before {
		if reflect.DeepEqual(before[i], after[i]) {
			continue
		}
		_, stays := inAfter[text(before[i])]
		_, stayed := inBefore[text(after[i])]
		if stays || stayed || !share(before[i], after[i]) {
			return false
		}
		leavesOf("", before[i], after[i], func(field string) { lost[field] = true })
	}
	for i := range after {
		gets := false
		leavesOf("", after[i], before[i], func(field string) { gets = gets || lost[field] })
		if gets {
			return false
		}
	}
	return true
}

// leavesOf calls f with each field below value, and what it is, that other does not have and
// that is not zero.
func leavesOf(path string, value, other any, f func(field string)) {
	fields, ok := value.(map[string]any)
	if !ok {
		if !jsontree.IsZero(value) && !reflect.DeepEqual(value, other) {
			f(path + "=" + text(value))
		}
		return
	}
	others, _ := other.(map[string]any)
	for name, field := range fields {
		leavesOf(path+jsontree.Pointer(name), field, others[name], f)
	}
}

// share reports whether two values have a field with the same value, other than zero.
func share(a, b any) bool {
	inA, ok1 := a.(map[string]any)
	inB, ok2 := b.(map[string]any)
	if !ok1 || !ok2 {
		return false
	}
	for name, value := range inA {
		if !jsontree.IsZero(value) && (reflect.DeepEqual(value, inB[name]) || share(value, inB[name])) {
			return true
		}
	}
	return false
}

// operations are those of a JSON patch.
type operations struct {
	all    []JSONOp
	unsure string // path of the first part that they cannot change for certain
}

// maxOperations is what the API server accepts in one patch.
const maxOperations = 10_000

// operationsOf returns the operations that turn before into after. unsure is a path if they
// cannot be known from these alone.
func operationsOf(before, after map[string]any) (ops []JSONOp, unsure string) {
	o := &operations{}
	o.fields("", before, after)
	if len(o.all) > maxOperations-2 { // and the preconditions
		return nil, "metadata"
	}
	return o.all, o.unsure
}

func (o *operations) add(op JSONOp) { o.all = append(o.all, op) }

func (o *operations) fields(path string, before, after map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		// Null is what a Go type prints that has no value: a merge patch removes it, too.
		if _, stays := after[name]; !stays || after[name] == nil && before[name] != nil {
			o.add(JSONOp{Op: "remove", Path: path + jsontree.Pointer(name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		b := before[name]
		if after[name] == nil || reflect.DeepEqual(b, after[name]) {
			continue
		}
		known := path == "/metadata" // its maps, such as labels, have no other fields
		if a, is := after[name].(map[string]any); is && len(a) > 0 && jsontree.IsZero(b) && !known && o.unsure == "" {
			// Whether it is there, and with other fields, does not show: a Go type prints
			// zeros that the server does not have.
			o.unsure = dotted(path + jsontree.Pointer(name))
		}
		o.value("add", path+jsontree.Pointer(name), b, after[name])
	}
}

// value changes the value at path, with op if as a whole.
func (o *operations) value(op, path string, before, after any) {
	if reflect.DeepEqual(before, after) {
		return
	}
	b, ok1 := before.(map[string]any)
	a, ok2 := after.(map[string]any)
	if ok1 && ok2 {
		o.fields(path, b, a)
		return
	}
	if elementsChange(before, after) {
		if list, ok := after.([]any); ok {
			o.elements(path, before.([]any), list)
			return
		}
	}
	o.add(JSONOp{Op: op, Path: path, Value: after})
}

func (o *operations) elements(path string, before, after []any) {
	origins, certain := match(before, after)
	if !certain {
		o.unsure = dotted(path)
		return
	}
	stays := make([]bool, len(before))
	for _, origin := range origins {
		if origin >= 0 {
			stays[origin] = true
		}
	}
	var now []int // origins of the elements, as the list is after each operation
	for i := range before {
		if stays[i] {
			now = append(now, i)
		}
	}
	for i := len(before) - 1; i >= 0; i-- {
		if !stays[i] {
			o.add(JSONOp{Op: "remove", Path: path + "/" + strconv.Itoa(i)})
		}
	}
	for i, origin := range origins {
		if len(o.all) > maxOperations { // which is refused; moves would take quadratic time
			return
		}
		at := path + "/" + strconv.Itoa(i)
		if origin < 0 {
			o.add(JSONOp{Op: "add", Path: at, Value: after[i]})
			now = slices.Insert(now, i, -1)
			continue
		}
		if from := slices.Index(now, origin); from != i {
			o.add(JSONOp{Op: "move", From: path + "/" + strconv.Itoa(from), Path: at})
			now = slices.Insert(slices.Delete(now, from, from+1), i, origin)
		}
		o.value("replace", at, before[origin], after[i])
	}
}

func dotted(pointer string) string {
	return strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
}

// edit makes the change from before to after in raw, the same object with all of its fields.
// It does not modify raw. lossy is the path of a list that it cannot change without the loss of
// fields.
func edit(path string, raw, before, after any) (edited any, lossy string) {
	if reflect.DeepEqual(before, after) {
		return raw, ""
	}
	b, ok1 := before.(map[string]any)
	a, ok2 := after.(map[string]any)
	r, ok3 := raw.(map[string]any)
	if (ok1 || before == nil) && ok2 && ok3 { // a Go type may omit what has only other fields
		return editFields(path, r, b, a)
	}
	if !elementsChange(before, after) {
		return after, ""
	}
	list, _ := raw.([]any)
	was, is := before.([]any), after.([]any)
	origins, certain := match(was, is)
	switch {
	case covers(was, list):
		return after, ""
	case !certain || len(list) != len(was):
		return nil, dotted(path)
	}
	out := make([]any, len(is))
	for i, origin := range origins {
		out[i] = is[i]
		if origin >= 0 {
			if out[i], lossy = edit(path+"/"+strconv.Itoa(i), list[origin], was[origin], is[i]); lossy != "" {
				return nil, lossy
			}
		}
	}
	return out, ""
}

func editFields(path string, raw, before, after map[string]any) (edited map[string]any, lossy string) {
	out := maps.Clone(raw)
	for name := range before {
		if after[name] == nil {
			delete(out, name)
		}
	}
	for name, value := range after {
		b := before[name]
		if value == nil || reflect.DeepEqual(b, value) {
			continue
		}
		if out[name], lossy = edit(path+jsontree.Pointer(name), raw[name], b, value); lossy != "" {
			return nil, lossy
		}
	}
	return out, ""
}

// covers reports whether known has every field that is in raw.
func covers(known, raw any) bool {
	switch r := raw.(type) {
	case map[string]any:
		k, ok := known.(map[string]any)
		for name, value := range r {
			if field, has := k[name]; !has && value != nil || !covers(field, value) {
				return false
			}
		}
		return ok || len(r) == 0
	case []any:
		k, ok := known.([]any)
		if !ok || len(k) != len(r) {
			return len(r) == 0
		}
		for i, element := range r {
			if !covers(k[i], element) {
				return false
			}
		}
	}
	return true
}
