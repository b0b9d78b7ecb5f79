// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/shards"
)

var everyBy = []shards.By{shards.Namespace, shards.UID, shards.Owner}

// screens returns the screens of no shard and of all.
func screens(by shards.By) (none, all *ShardScreen) {
	return NewShardScreen(shards.Division{By: by, Count: 2}), NewShardScreen(shards.Division{By: by, Count: 2, Held: shards.SetOf(0, 1)})
}

func isPod(kind []byte) bool { return string(kind) == "Pod" }

// shardOf returns what decides the shard of an object.
func shardOf(by shards.By, meta *metav1.ObjectMeta) string {
	switch owner := metav1.GetControllerOfNoCopy(meta); {
	case by == shards.Namespace:
		return meta.Namespace
	case by == shards.Owner && owner != nil:
		return string(owner.UID)
	}
	return string(meta.UID)
}

const (
	front = `{"kind":"Pod","apiVersion":"v1",`
	sound = `"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7"}`
	owned = `"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7","ownerReferences":[{"uid":"p"},{"uid":"c","controller":true}]}`
)

func TestShardScreen_DropsOnlyWhatIsSurelyForeign_I14(t *testing.T) {
	for text, sure := range map[string]bool{
		front + sound + `,"spec":{"a":[1,{"b":"}"}]}}`:        true,
		`{"spec":{"metadata":{}},` + sound + `,"kind":"Pod"}`: true,
		`{` + sound + `}`:         true,
		" {\n" + sound + "\t} \n": true,
		front + owned + `}`:       true,
		front + strings.Replace(owned, `true`, `false`, 1) + `}`: true,
		// repeated
		front + sound + `,` + sound + `}`:                                          false,
		front + `"metadata":{"uid":"v",` + sound[len(`"metadata":{`):] + `}`:       false,
		front + `"metadata":{"namespace":"v",` + sound[len(`"metadata":{`):] + `}`: false,
		front + `"kind":"Pod",` + sound + `}`:                                      false,
		// escaped, or of other characters
		front + strings.Replace(sound, `"u"`, `"\u0075"`, 1) + `}`:           false,
		front + strings.Replace(sound, `"uid"`, `"ui\u0064"`, 1) + `}`:       false,
		front + strings.Replace(sound, `"u"`, "\"\xff\"", 1) + `}`:           false,
		front + strings.Replace(sound, `metadata`, `meta\u0064ata`, 1) + `}`: false,
		// missing
		front + strings.Replace(sound, `"uid":"u",`, ``, 1) + `}`:             false,
		front + strings.Replace(sound, `"name":"a",`, ``, 1) + `}`:            false,
		front + strings.Replace(sound, `,"resourceVersion":"7"`, ``, 1) + `}`: false,
		front + strings.Replace(sound, `"u"`, `""`, 1) + `}`:                  false,
		front + strings.Replace(sound, `"u"`, `null`, 1) + `}`:                false,
		front + strings.Replace(sound, `"u"`, `7`, 1) + `}`:                   false,
		`{"kind":"Pod"}`: false,
		// of another kind
		`{"kind":"Node",` + sound + `}`: false,
		// garbled
		``: false, `{`: false, `[]`: false, `null`: false, front + sound: false, front + sound + `}}`: false, front + sound + `} {}`: false,
		front + `"metadata":[]}`: false, front + sound + `,}`: false,
	} {
		for _, by := range everyBy {
			none, all := screens(by)
			if m, foreign := none.Foreign([]byte(text), false, isPod); foreign != sure {
				t.Errorf("%s is foreign by %s: %v, want %v (%+v)", text, by, foreign, sure, m)
			} else if foreign && string(m.ResourceVersion) != "7" {
				t.Errorf("the version of %s is %q", text, m.ResourceVersion)
			}
			if _, foreign := all.Foreign([]byte(text), false, isPod); foreign {
				t.Errorf("%s is foreign by %s although all shards are held", text, by)
			}
		}
	}
	none, _ := screens(shards.Owner)
	for _, references := range []string{
		`[{"uid":"c","controller":true},{"uid":"d","controller":true}]`, `[{"controller":true}]`, `[{"uid":"c","controller":1}]`,
		`[{"uid":"c","uid":"d","controller":true}]`, `[{"uid":"c","controller":true]`, `{}`, `[7]`,
	} {
		text := front + `"metadata":{"name":"a","uid":"u","resourceVersion":"7","ownerReferences":` + references + `}}`
		if _, foreign := none.Foreign([]byte(text), false, isPod); foreign {
			t.Errorf("an object with the references %s is foreign", references)
		}
	}
}

func TestShardScreen_ReadsProtobufAsTheLibraryDoes_I14(t *testing.T) {
	is := true
	for i := range 200 {
		meta := metav1.ObjectMeta{Name: fmt.Sprint("n", i), Namespace: fmt.Sprint("ns", i%9), UID: types.UID(fmt.Sprint("u", i)), ResourceVersion: "7", Generation: 3}
		if i%2 == 0 {
			meta.OwnerReferences = []metav1.OwnerReference{{UID: "x"}, {Name: "c", UID: types.UID(fmt.Sprint("c", i)), Controller: &is, BlockOwnerDeletion: &is}}
		}
		raw, err := (&metav1.PartialObjectMetadata{ObjectMeta: meta}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(&metav1.PartialObjectMetadata{ObjectMeta: meta})
		if err != nil {
			t.Fatal(err)
		}
		for _, by := range everyBy {
			d := shards.Division{By: by, Count: 5, Held: shards.SetOf(1, 3)}
			want := !shards.HolderOf(d).HasString(shardOf(by, &meta))
			if _, foreign := NewShardScreen(d).Foreign(raw, true, isPod); foreign != want {
				t.Errorf("protobuf of %v is foreign by %s: %v, want %v", meta, by, foreign, want)
			}
			if _, foreign := NewShardScreen(d).Foreign(text, false, isPod); foreign != want {
				t.Errorf("JSON of %v is foreign by %s: %v, want %v", meta, by, foreign, want)
			}
			for cut := range raw {
				if m, foreign := NewShardScreen(shards.Division{By: by, Count: 5}).Foreign(raw[:cut], true, isPod); foreign {
					t.Errorf("%d bytes of %d are foreign: %+v", cut, len(raw), m)
				}
			}
			if _, foreign := NewShardScreen(shards.Division{By: by, Count: 5}).Foreign(append(raw, raw...), true, isPod); foreign {
				t.Error("two metadata of an object are foreign")
			}
		}
	}
}

// What is dropped means to the decoder what the screen has read.
func FuzzShardScreen(f *testing.F) {
	f.Add([]byte(front+owned+`}`), false)
	f.Add([]byte(front+sound+`,"spec":{"a":"\\\""}}`), false)
	f.Add([]byte(`{"metadata":{"name":"a","uid":"u","uid":"v","resourceVersion":"7"}}`), false)
	is := true
	raw, _ := (&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: "ns", UID: "u", ResourceVersion: "7", OwnerReferences: []metav1.OwnerReference{{UID: "c", Controller: &is}},
	}}).Marshal()
	f.Add(raw, true)
	f.Fuzz(func(t *testing.T, raw []byte, protobuf bool) {
		for _, by := range everyBy {
			d := shards.Division{By: by, Count: 3, Held: shards.SetOf(1)}
			m, foreign := NewShardScreen(d).Foreign(raw, protobuf, func([]byte) bool { return true })
			if !foreign {
				continue
			}
			var object metav1.PartialObjectMetadata
			var err error
			if protobuf {
				err = object.Unmarshal(raw)
			} else {
				err = kjson.UnmarshalCaseSensitivePreserveInts(raw, &object)
			}
			if err != nil {
				continue // broken elsewhere, in an object that is not held
			}
			if shards.HolderOf(d).HasString(shardOf(by, &object.ObjectMeta)) || object.ResourceVersion != string(m.ResourceVersion) || object.Name != string(m.Name) {
				t.Errorf("%q is dropped by %s with %+v, and is %+v", raw, by, m, object.ObjectMeta)
			}
		}
	})
}

func BenchmarkShardScreen(b *testing.B) {
	is := true
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "web-6c5f7d9b8-x2x7k", Namespace: "prod", UID: "3f2b7c1e-9f1d-4a68-8f0e-5d4a1c0b9e77", ResourceVersion: "123456789",
		Labels:          map[string]string{"app": "web", "tier": "front"},
		Annotations:     map[string]string{"note": strings.Repeat("n", 2000)},
		OwnerReferences: []metav1.OwnerReference{{UID: "c0b9e77d-9f1d-4a68-8f0e-5d4a1c3f2b7c", Controller: &is}},
	}}
	protobuf, _ := object.Marshal()
	text, _ := json.Marshal(object)
	for _, by := range everyBy {
		screen, _ := screens(by)
		for name, raw := range map[string][]byte{"protobuf": protobuf, "json": text} {
			b.Run(fmt.Sprint(by, "/", name), func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					if _, foreign := screen.Foreign(raw, name == "protobuf", isPod); !foreign {
						b.Fatal("held")
					}
				}
			})
		}
	}
}
