// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
)

const (
	lowerHalf = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	upperHalf = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// sharded returns a server with ConfigMaps c-00 to c-31, and the names of those in the lower
// half of uids.
func sharded(t *testing.T, opts Options) (s *Server, all, lower []string) {
	t.Helper()
	opts.Namespaces = []string{"n"}
	s = New(opts)
	for i := range 32 {
		name := fmt.Sprintf("c-%02d", i)
		stored(t, s, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap",`+
			`"metadata":{"namespace":"n","name":%q,"labels":{"n":"%d"}}}`, name, i%2))
		uid := s.store.Get(configMaps, types.NamespacedName{Namespace: "n",
			Name: name}).Meta().GetUID()
		if all = append(all, name); sharding.HashField(string(uid)) < "8" {
			lower = append(lower, name)
		}
	}
	if len(lower) == 0 || len(lower) == len(all) {
		t.Fatalf("%d of %d objects are in the lower half, want some", len(lower), len(all))
	}
	return s, all, lower
}

func byShard(selector, more string) string {
	return "/api/v1/configmaps?shardSelector=" + url.QueryEscape(selector) + more
}

// A shard selector selects by the hash of a field, and together with the other selectors.
func TestServer_SelectsByShard_S17(t *testing.T) {
	s, all, lower := sharded(t, Options{})
	upper := slices.DeleteFunc(slices.Clone(all),
		func(name string) bool { return slices.Contains(lower, name) })
	even := slices.DeleteFunc(slices.Clone(lower),
		func(name string) bool { return !strings.ContainsAny(name[3:], "02468") })
	for _, c := range []struct{ selector, more, want string }{
		{lowerHalf, "", strings.Join(lower, " ")},
		{upperHalf, "", strings.Join(upper, " ")},
		{upperHalf + "||" + lowerHalf, "", strings.Join(all, " ")},
		{lowerHalf, "&labelSelector=n=0", strings.Join(even, " ")},
		{lowerHalf, "&fieldSelector=metadata.name=" + lower[1], lower[1]},
		{lowerHalf, "&fieldSelector=metadata.name=" + upper[1], ""},
		{lowerHalf, "&limit=3", strings.Join(lower[:3], " ")},
		{"true", "", "400 invalid shard selector: unexpected expression kind 5; " +
			"expected shardRange() call or || operator"},
	} {
		if got := asked(t, s, byShard(c.selector, c.more)); got != c.want {
			t.Errorf("by %s %s: got %q, want %q", c.selector, c.more, got, c.want)
		}
	}
}

// events opens a watch of ConfigMaps, which ends with the test, and returns its next events.
func events(t *testing.T, at, path string) (next func(n int) string) {
	t.Helper()
	answer, err := http.Get(at + path)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("watch %s: %v %v", path, answer, err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	in := json.NewDecoder(bufio.NewReader(answer.Body))
	return func(n int) string {
		t.Helper()
		var seen []string
		for range n {
			var event struct {
				Type   string
				Object struct{ Metadata metav1.ObjectMeta }
			}
			if err := in.Decode(&event); err != nil {
				return strings.Join(append(seen, err.Error()), " ")
			}
			seen = append(seen, event.Type+" "+event.Object.Metadata.Name)
		}
		return strings.Join(seen, " ")
	}
}

// A server that ignores shard selectors from now on leaves open watches theirs, and sends the
// objects of all shards to later ones.
func TestServer_IgnoresShardSelectors(t *testing.T) {
	s, all, lower := sharded(t, Options{})
	listening := httptest.NewServer(s)
	defer listening.Close()
	defer listening.CloseClientConnections()
	watch := byShard(lowerHalf, fmt.Sprint("&watch=true&resourceVersion=", s.Revision()))
	removed := func(names []string) (keys []types.NamespacedName, want string) {
		for _, name := range names {
			keys, want = append(keys, types.NamespacedName{Namespace: "n",
				Name: name}), want+" DELETED "+name
		}
		return keys, strings.TrimSpace(want)
	}

	before := events(t, listening.URL, watch)
	s.IgnoreShardSelectors(true)
	if got, want := asked(t, s, byShard(lowerHalf, "")), strings.Join(all, " "); got != want {
		t.Errorf("a list of a shard has %s, want all: %s", got, want)
	}
	if got, want := asked(t, s, byShard("true", "")), strings.Join(all, " "); got != want {
		t.Errorf("a list by an invalid selector has %s, want all: %s", got, want)
	}
	during := events(t, listening.URL, watch)
	keys, wantAll := removed(all)
	_, wantLower := removed(lower)
	for _, key := range keys {
		if err := s.Remove(configMaps, key); err != nil {
			t.Fatal(err)
		}
	}
	if got := before(len(lower)); got != wantLower {
		t.Errorf("the watch from before: got %s, want %s", got, wantLower)
	}
	if got := during(len(all)); got != wantAll {
		t.Errorf("a watch from later: got %s, want %s", got, wantAll)
	}
	// With its restart a server begins to ignore them for its clients too.
	s.CloseWatches(configMaps)
	if got := before(1); got != "EOF" {
		t.Errorf("the watch from before goes on with %s, want its end", got)
	}
	s.Heal()
	if got := asked(t, s, byShard("true", "")); !strings.HasPrefix(got,
		"400 invalid shard selector") {
		t.Errorf("a healed server answers an invalid selector with %s", got)
	}
}

// Heal does not make a server know shard selectors that never did.
func TestServer_OptionIgnoresShardSelectors(t *testing.T) {
	s, all, _ := sharded(t, Options{IgnoreShardSelectors: true})
	s.Heal()
	if got, want := asked(t, s, byShard(lowerHalf, "")), strings.Join(all, " "); got != want {
		t.Errorf("a list of a shard has %s, want all: %s", got, want)
	}
}
