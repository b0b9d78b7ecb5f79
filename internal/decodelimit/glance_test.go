// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

import (
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/client-go/kubernetes/scheme"
)

// smallBecomes is what a protobuf object that is not weighed may become at most, in bytes:
// docs/bad-input.md says so.
const smallBecomes = 18 << 20

// largest returns the fields that lead to the largest message in a list of t, and its size.
// An empty element of that list is two bytes.
func largest(t reflect.Type, above map[reflect.Type]bool) (path []int, size int) {
	if t.Kind() != reflect.Struct || above[t] {
		return nil, 0
	}
	above[t] = true
	defer delete(above, t)
	for i := range t.NumField() {
		parts := strings.Split(t.Field(i).Tag.Get("protobuf"), ",")
		if len(parts) < 2 {
			continue
		}
		number, err := strconv.Atoi(parts[1])
		if err != nil {
			continue
		}
		of := t.Field(i).Type
		if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct && int(of.Elem().Size()) > size && number < 16 {
			path, size = []int{number}, int(of.Elem().Size())
		}
		for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if below, larger := largest(of, above); larger > size {
			path, size = append([]int{number}, below...), larger
		}
	}
	return path, size
}

// hollow is a message of nothing but empty elements at path.
func hollow(path []int, size int) []byte {
	const ofEnvelopes = 64
	var out []byte
	for last := len(path) - 1; len(out) < size-ofEnvelopes; {
		out = append(protowire.AppendTag(out, protowire.Number(path[last]), protowire.BytesType), 0)
	}
	for i := len(path) - 2; i >= 0; i-- {
		out = protowire.AppendBytes(protowire.AppendTag(nil, protowire.Number(path[i]), protowire.BytesType), out)
	}
	return out
}

// What passes without being weighed is bounded: the built-in kind that becomes the largest
// is decoded.
func TestBudget_SmallProtobufBecomesLittle(t *testing.T) {
	var worst struct {
		of      reflect.Type
		message []byte
		weight  int64
	}
	for _, of := range scheme.Scheme.AllKnownTypes() {
		if _, is := reflect.New(of).Interface().(interface{ Unmarshal([]byte) error }); !is || strings.HasSuffix(of.Name(), "List") {
			continue
		}
		path, size := largest(of, map[reflect.Type]bool{})
		if size == 0 {
			continue
		}
		plan, bytes := Of(of).proto(), glanced
		for plan.Bound(int64(bytes)) > Object {
			bytes -= 512
		}
		message := hollow(path, bytes)
		if err := Alone().Protobuf(Of(of), message); err != nil {
			t.Fatalf("%s: %v; this tests what passes", of, err)
		}
		if weight, err := plan.Weigh(message, Object); err == nil && weight > worst.weight {
			worst.of, worst.message, worst.weight = of, message, weight
		}
	}
	decoded := reflect.New(worst.of).Interface().(interface{ Unmarshal([]byte) error })
	held := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := held()
	if err := decoded.Unmarshal(worst.message); err != nil {
		t.Fatal(err)
	}
	after := held()
	runtime.KeepAlive(decoded)
	t.Logf("%s of %d bytes becomes %d KiB; decoding is estimated at %d KiB", worst.of, len(worst.message), (after-before)>>10, worst.weight>>10)
	if after-before > smallBecomes {
		t.Errorf("%s of %d bytes becomes %d, want at most %d", worst.of, len(worst.message), after-before, smallBecomes)
	}
	if after-before < smallBecomes/2 {
		t.Errorf("%s of %d bytes becomes %d only: the messages no longer become large, so this tests nothing", worst.of, len(worst.message), after-before)
	}
}
