// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// stored is an object of the corpus.
type stored struct {
	kind *kinds.Kind
	*object.Object
}

// corpusObjects returns the objects of built-in kinds in the corpus of manifests.
func corpusObjects(t *testing.T) (all []stored) {
	files, _ := filepath.Glob("../transcript/testdata/corpus/*.yaml")
	registry := kinds.NewRegistry()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			body, err := yaml.YAMLToJSON(document)
			if err != nil {
				continue
			}
			gvk, err := KindIn(body)
			kind := registry.Kind(gvk)
			if err != nil || kind == nil {
				continue
			}
			if obj, _, err := Object(kind, runtime.ContentTypeJSON, body); err == nil {
				all = append(all, stored{kind, obj})
			}
		}
	}
	if len(all) < 200 {
		t.Fatalf("the corpus has only %d objects that can be read", len(all))
	}
	return all
}

// A patch that is applied to the fields has the result of one that is applied to the JSON.
func TestPatch_PlainlyAndThroughText(t *testing.T) {
	const patchesPerObject = 20
	random := rand.New(rand.NewPCG(1, 2))
	plain := map[types.PatchType]int{}
	for _, old := range corpusObjects(t) {
		for range patchesPerObject {
			change, ok := randomPatch(random, old.Fields).(map[string]any)
			if !ok {
				continue
			}
			patch, err := json.Marshal(change)
			if err != nil {
				t.Fatal(err)
			}
			for _, media := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
				p, _, err := ReadPatch(string(media), patch)
				if err != nil {
					t.Fatal(err)
				}
				got := p.plainlyOn(old.kind, old.Object)
				if got == nil {
					continue
				}
				plain[media]++
				want, problems, _, err := p.throughTextOn(old.kind, old.Object)
				if err != nil || len(problems) > 0 {
					t.Errorf("%s %s of %s: applied to the fields, but the JSON of it has problems: %v %v", media, patch, old.kind.Kind, err, problems)
				} else if !reflect.DeepEqual(got.Fields, want.Fields) {
					t.Errorf("%s %s of %s:\n got %v\nwant %v", media, patch, old.kind.Kind, got.Fields, want.Fields)
				}
			}
		}
	}
	for _, media := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		if plain[media] < 1000 {
			t.Errorf("only %d patches of type %s were applied to the fields", plain[media], media)
		}
	}
}

// The conditions of a Pod have fields that are null, in a list.
func TestPatch_NullInTheStoredObjectIsPlain(t *testing.T) {
	kind := kinds.NewRegistry().Kind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	old, _, err := Object(kind, runtime.ContentTypeJSON, []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},
		"status":{"conditions":[{"type":"Ready","status":"True","lastProbeTime":null}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, media := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		p, _, err := ReadPatch(string(media), []byte(`{"metadata":{"annotations":{"a":"b"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		if p.plainlyOn(kind, old) == nil {
			t.Errorf("%s: the object was encoded", media)
		}
	}
}

// randomPatch returns a patch that changes something somewhere in value.
func randomPatch(random *rand.Rand, value any) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 && random.IntN(8) > 0 {
			names := slices.Sorted(maps.Keys(v))
			name := names[random.IntN(len(names))]
			patch := map[string]any{name: randomPatch(random, v[name])}
			if key := v["name"]; key != nil && random.IntN(4) > 0 {
				patch["name"] = key // of an element of a list that is merged
			}
			return patch
		}
	case []any:
		if len(v) > 0 && random.IntN(4) > 0 {
			return []any{randomPatch(random, v[random.IntN(len(v))])}
		}
	}
	others := []any{value, nil, "other", "", int64(7), int64(1<<32 + 1), int64(math.MinInt64), int64(-1), true, 1.5, []any{}, map[string]any{}, map[string]any{"app": "other"}, map[string]any{"$patch": "delete"}, map[string]any{"$patch": "replace", "name": "a"}}
	return others[random.IntN(len(others))]
}
