// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"bytes"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A list in protobuf begins with its length. Even so, each object is encoded once.
func TestEncoder_LongListsAreEncodedOnce_S31(t *testing.T) {
	kind, items := manyPods(t, 1000)
	want, err := Encoder{kind: kind, Protobuf: true}.List(metav1.ListMeta{}, items)
	if err != nil {
		t.Fatal(err)
	}
	e := Encoder{kind: kind, Protobuf: true, Cache: &Cache{AtMost: 10_000}}
	var got []byte
	err = e.EachPart(metav1.ListMeta{}, items, func(part []byte) error {
		got = append(got, part...)
		for _, obj := range items {
			obj.Fields = map[string]any{} // anything encoded from now on is empty
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("S31: got %d bytes that are not the list of %d: objects were encoded again while the list was sent", len(got), len(want))
	}
}

// Contents come back in order; those beyond the bound are left out.
func TestHeldContents_ComeBackInTheirOrder(t *testing.T) {
	for _, atMost := range []int{0, 1} {
		held := heldContents{atMost: atMost}
		content := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d,", i*7919), heldBlock/100) }
		for i := 0; i < 300; i += 2 {
			if err := held.add(i, content(i)); err != nil {
				t.Fatal(err)
			}
		}
		came := 0
		for i := range 300 {
			got, ok, err := held.next([]byte("before"), i, len(content(i)))
			if err != nil || ok && i%2 == 1 {
				t.Fatalf("content %d: held %t, %v", i, ok, err)
			}
			if want := append([]byte("before"), content(i)...); ok && !bytes.Equal(got, want) {
				t.Fatalf("content %d is %d bytes, want %d", i, len(got), len(want))
			}
			if ok {
				came++
			}
		}
		if all := came == 150; all != (atMost == 0) || came == 0 {
			t.Errorf("with a bound of %d, %d of 150 contents came back", atMost, came)
		}
	}
}
