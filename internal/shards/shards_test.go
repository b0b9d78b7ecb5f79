// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"fmt"
	"slices"
	"strconv"
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

// parse returns the set of a text such as "0-7,9", or an error. count is the number of all shards.
func parse(text string, count int) (shards.Set, error) {
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		if text == "" {
			break
		}
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || from < 0 || to < from || to >= count {
			return "", fmt.Errorf("read shards %q: %q is not a shard or a range of shards below %d, such as 0-7,9", text, part, count)
		}
		for s := from; s <= to; s++ {
			all = append(all, s)
		}
	}
	return shards.SetOf(all...), nil
}

func TestSet_IsWrittenAsRanges(t *testing.T) {
	for text, of := range map[string][]int{"": nil, "3": {3}, "0-7,9": {9, 0, 1, 2, 3, 4, 5, 6, 7, 7}, "0-1,30-31": {31, 30, 1, 0}} {
		set := shards.SetOf(of...)
		if set.String() != text {
			t.Errorf("SetOf(%v) = %q, want %q", of, set, text)
		}
		again, err := parse(text, 32)
		if err != nil || again != set || !slices.Equal(shards.SetOf(again.All()...).All(), set.All()) {
			t.Errorf("parse(%q) = %q, %v", text, again, err)
		}
	}
	for _, text := range []string{"a", "-1", "3-1", "32", "1,,2", "0-32"} {
		if set, err := parse(text, 32); err == nil {
			t.Errorf("parse(%q) = %q, want an error", text, set)
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
