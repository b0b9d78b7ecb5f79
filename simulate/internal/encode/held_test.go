// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"bytes"
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
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

// What an earlier list encoded is not encoded again, in whatever part of it is asked for and
// however many objects were changed, and the lists are equal to those of a new server.
func TestEncoder_LaterListsEncodeWhatChanged_S31(t *testing.T) {
	kind, items := manyPods(t, 1000)
	cache := &Cache{AtMost: 10_000}
	list := func(items []*object.Object, keep *Cache) []byte {
		body, err := Encoder{kind: kind, Protobuf: true, Cache: keep}.List(metav1.ListMeta{}, items)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	list(items, cache)
	for round, change := range []struct{ every, from, to int }{{0, 0, 1000}, {100, 0, 1000}, {0, 200, 900}, {2, 0, 1000}, {0, 0, 1000}, {0, 500, 1000}} {
		for i := 0; change.every > 0 && i < len(items); i += change.every {
			fields := maps.Clone(items[i].Fields)
			fields["spec"] = map[string]any{"nodeName": fmt.Sprint("other-", round)}
			items[i] = &object.Object{Fields: fields}
		}
		part := items[change.from:change.to]
		want := list(part, nil)
		known := map[*object.Object]bool{}
		for _, obj := range part {
			if _, held := cache.list.Load().place(obj.Encoded.Load().In(kind, object.ContentForm{Protobuf: true})); held {
				known[obj] = true
			}
		}
		if least := 400; len(known) < least {
			t.Fatalf("S31: round %d: %d objects are held, want at least %d", round, len(known), least)
		}
		whole := map[*object.Object]map[string]any{}
		for obj := range known {
			if obj == part[0] {
				continue // it is encoded for an estimate
			}
			whole[obj], obj.Fields = obj.Fields, map[string]any{} // encoded now, it would be empty
		}
		got := list(part, cache)
		for obj, fields := range whole {
			obj.Fields = fields
		}
		if !bytes.Equal(got, want) {
			t.Errorf("S31: round %d: %d bytes that are not the list of %d: an object was encoded again", round, len(got), len(want))
		}
	}
}

// A page of a long list does not replace what the long list left.
func TestEncoder_PagesKeepTheHeldList_S31(t *testing.T) {
	kind, items := manyPods(t, 1000)
	e := Encoder{kind: kind, Protobuf: true, Cache: &Cache{AtMost: 200_000}}
	if _, err := e.List(metav1.ListMeta{}, items); err != nil {
		t.Fatal(err)
	}
	held := e.Cache.list.Load()
	if held.len() != len(items) {
		t.Fatalf("S31: %d of %d objects are held", held.len(), len(items))
	}
	for i, obj := range items[:50] {
		items[i] = &object.Object{Fields: obj.Fields} // changed
	}
	if _, err := e.List(metav1.ListMeta{RemainingItemCount: new(int64(len(items) - 50))}, items[:50]); err != nil {
		t.Fatal(err)
	}
	if e.Cache.list.Load() != held {
		t.Error("S31: a page has replaced the held list")
	}
}

// Contents come back in order; those beyond the bound are left out.
func TestHeldList_ContentsComeBackInTheirOrder(t *testing.T) {
	const count = 300
	content := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d,", i*7919), heldBlock/100) }
	for _, c := range []struct{ atMost, step int }{{0, 1}, {1, 1}, {0, 3}, {1, 3}} {
		w := heldWriter{atMost: c.atMost}
		all := make([]*object.Encoding, count)
		for i := range all {
			all[i] = &object.Encoding{}
			if i%2 == 1 {
				continue
			}
			if err := w.add(all[i], content(i)); err != nil {
				t.Fatal(err)
			}
		}
		list, err := w.end()
		if err != nil {
			t.Fatal(err)
		}
		r := heldReader{list: list}
		came, asked := 0, 0
		for i := 0; i < count; i += c.step {
			asked += 1 - i%2
			got, ok, err := r.append([]byte("before"), all[i], len(content(i)))
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
		if bounded := c.atMost > 0; (came < asked) != bounded || came == 0 {
			t.Errorf("with a bound of %d, %d of %d contents came back", c.atMost, came, asked)
		}
		if _, ok, err := r.append(nil, all[0], len(content(0))); ok || err != nil {
			t.Errorf("a content before the last one came back: %v", err)
		}
	}
}
