// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/shards"
)

// The shard of a value is the one whose range has the hash of the library, for any number of shards,
// also one that does not divide the hash space.
func TestOf_AgreesWithTheRangesOfTheLibrary(t *testing.T) {
	for _, count := range []int{1, 2, 3, 7, 32, 1000, shards.Most} {
		for i := range 200 {
			value := fmt.Sprintf("value-%d", i*i)
			obj := &metav1.PartialObjectMetadata{}
			obj.UID, obj.Namespace = types.UID(value), value
			mine := shards.Of(value, count)
			for _, by := range []shards.By{shards.UID, shards.Namespace} {
				for _, shard := range []int{mine - 1, mine, mine + 1} {
					if shard < 0 || shard >= count {
						continue
					}
					if got := matches(t, shards.Division{By: by, Count: count, Held: shards.SetOf(shard)}.Selector(), obj); got != (shard == mine) {
						t.Fatalf("shard %d of %d has %q: %v, and Of is %d", shard, count, value, got, mine)
					}
				}
			}
		}
	}
}

// matches evaluates a selector of one range as the library does.
func matches(t *testing.T, selector string, obj *metav1.PartialObjectMetadata) bool {
	t.Helper()
	part := strings.Split(selector, "'")
	key := strings.Trim(strings.TrimPrefix(part[0], "shardRange("), ", ")
	is, err := sharding.NewSelector(sharding.ShardRangeRequirement{Key: key, Start: part[1], End: part[3]}).Matches(obj)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func TestSet_IsWrittenAsRanges(t *testing.T) {
	for text, of := range map[string][]int{"": nil, "3": {3}, "0-7,9": {9, 0, 1, 2, 3, 4, 5, 6, 7, 7}, "0-1,30-31": {31, 30, 1, 0}} {
		set := shards.SetOf(of...)
		if set.String() != text {
			t.Errorf("SetOf(%v) = %q, want %q", of, set, text)
		}
		want := slices.Compact(slices.Sorted(slices.Values(of)))
		if got := set.All(); !slices.Equal(got, want) {
			t.Errorf("SetOf(%v) has %v, want %v", of, got, want)
		}
	}
}

func TestDivision_SelectsAdjacentShardsAsOneRange(t *testing.T) {
	d := shards.Division{By: shards.UID, Count: 4, Held: shards.SetOf(3, 0, 1)}
	want := "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || " +
		"shardRange(object.metadata.uid, '0xc000000000000000', '0x10000000000000000')"
	if got := d.Selector(); got != want {
		t.Errorf("Selector = %s, want %s", got, want)
	}
	d.By = shards.Owner
	if got := d.Selector(); got != "" {
		t.Errorf("Selector = %s by owner, which no server knows", got)
	}
}

func TestHolder_HasTheHeldShards(t *testing.T) {
	d := shards.Division{By: shards.UID, Count: 5, Held: shards.SetOf(1, 4)}
	h, has := shards.HolderOf(d), 0
	for i := range 1000 {
		value := fmt.Sprint(i)
		if want := slices.Contains([]int{1, 4}, shards.Of(value, 5)); h.HasString(value) != want || h.Has([]byte(value)) != want {
			t.Fatalf("Has(%q) = %v", value, !want)
		}
		if h.HasString(value) {
			has++
		}
	}
	if has == 0 || has == 1000 {
		t.Errorf("%d of 1000 values are held", has)
	}
	if !shards.HolderOf(shards.Division{}).HasString("x") {
		t.Error("the zero Division does not have everything")
	}
}
