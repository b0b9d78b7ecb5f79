// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	crds     = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	gears    = "/apis/shards.example.com/v1/namespaces/shards-0/gears"
	allGears = "/apis/shards.example.com/v1/gears"
	gearCRD  = `{"metadata":{"name":"gears.shards.example.com"},
		"spec":{"group":"shards.example.com","scope":"Namespaced",
		"names":{"kind":"Gear","plural":"gears"},
		"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
)

// both creates ConfigMaps until there is one in a shard and one outside, and ends with one in
// it. It returns their keys in order.
func (s *shardServer) both(namespace, prefix string, r shard) (made []string) {
	s.Helper()
	for in, out := false, false; !in || !out || !s.has(made[len(made)-1], r); {
		name := fmt.Sprintf("%s-%03d", prefix, len(made))
		s.configMap(namespace, name)
		made = append(made, namespace+"/"+name)
		has := s.has(made[len(made)-1], r)
		in, out = in || has, out || !has
	}
	return made
}

// events returns the events of changes to objects, as far as the shard has these.
func (s *shardServer) events(kind string, keys []string, r shard) (events []string) {
	for _, key := range keys {
		if s.has(key, r) {
			events = append(events, kind+" "+key)
		}
	}
	return events
}

// watches watches one shard, from a version, from now, and with a streaming list.
func (s *shardServer) watches() {
	half := part("uid", 0, 2)
	now := s.list(allConfigMaps, nil).Metadata.ResourceVersion
	initial := s.events("ADDED", s.in(half), half)
	const end = "BOOKMARK map[k8s.io/initial-events-end:true] false"
	streaming := s.watch(allConfigMaps, with([]shard{half}, "labelSelector", "of=shards",
		"sendInitialEvents", "true",
		"resourceVersionMatch", "NotOlderThan", "allowWatchBookmarks", "true"))
	first := streaming(end)
	slices.Sort(first[:len(first)-1]) // in no order
	s.same("streaming list", first, append(initial, end))
	live := s.watch(allConfigMaps, ours(half))
	legacy := live(initial[len(initial)-1])
	s.note(fmt.Sprint(len(legacy) <= len(initial)), "initial events without sendInitialEvents")
	past := s.watch(allConfigMaps, with([]shard{half}, "resourceVersion", now))
	other := s.watch(allConfigMaps, with([]shard{part("uid", 1, 2)}, "labelSelector", "of=shards",
		"resourceVersion", now))

	made := s.both(shardNamespace(1), "w", half)
	for _, key := range made {
		s.update(key, `{"data":{"a":"b"}}`)
	}
	// An object that leaves the selection of labels is deleted for the watch, if the shard has it.
	for _, key := range made {
		s.update(key, `{"metadata":{"labels":{"of":null}}}`)
		s.update(key, `{"metadata":{"labels":{"of":"shards"}}}`)
	}
	for _, key := range made {
		s.remove(key)
	}
	want := slices.Concat(s.events("ADDED", made, half), s.events("MODIFIED", made, half))
	for _, key := range s.events("", made, half) {
		want = append(want, "DELETED"+key, "ADDED"+key)
	}
	want = append(want, s.events("DELETED", made, half)...)
	// The end is the only event of another object.
	last := s.both(shardNamespace(1), "end", half)
	marker := "ADDED " + last[len(last)-1]
	want = append(want, s.events("ADDED", last, half)...)
	s.same("watch of a streaming list", streaming(marker), want)
	s.same("watch from now", without(live(marker), initial), want)
	labelled := slices.DeleteFunc(past(marker), func(e string) bool {
		return strings.HasPrefix(e,
			"MODIFIED")
	})
	unlabelled := slices.Concat(s.events("ADDED", made, half), s.events("DELETED", made, half),
		s.events("ADDED", last, half))
	s.same("watch from a version", labelled, unlabelled)
	outside := part("uid", 1, 2)
	firstOutside := s.events("ADDED", made, outside)[0]
	s.same("watch of the other shard", other(firstOutside), []string{firstOutside})
	for _, key := range made {
		delete(s.made, key)
	}
}

// without returns events without the initial ones, which may come late in a watch without a
// version.
func without(events, initial []string) []string {
	return slices.DeleteFunc(events, func(e string) bool { return slices.Contains(initial, e) })
}

// recreated deletes objects, and creates others with their names, which have other uids.
func (s *shardServer) recreated() {
	half := part("uid", 0, 2)
	watch := s.watch(allConfigMaps, with([]shard{half}, "resourceVersion", s.list(allConfigMaps,
		nil).Metadata.ResourceVersion))
	var want []string
	for i := range 12 {
		key := shardNamespace(2) + "/c-" + fmt.Sprintf("%03d", 2+i*shardNamespaces)
		want = append(want, s.events("DELETED", []string{key}, half)...)
		s.remove(key)
		s.configMap(shardNamespace(2), key[len(shardNamespace(2))+1:])
		want = append(want, s.events("ADDED", []string{key}, half)...)
	}
	last := s.both(shardNamespace(2), "end", half)
	want = append(want, s.events("ADDED", last, half)...)
	s.same("objects made again", watch(want[len(want)-1]), want)
}

// update merges a patch into a ConfigMap.
func (s *shardServer) update(key, patch string) {
	s.Helper()
	merge := map[string]string{"Content-Type": "application/merge-patch+json"}
	if got := s.do(http.MethodPatch, pathOf(key), nil, merge, patch); got.Code != http.StatusOK {
		s.Fatalf("patch %s: %d %s", key, got.Code, got.Message)
	}
}

// remove deletes a ConfigMap.
func (s *shardServer) remove(key string) {
	s.Helper()
	if got := s.do(http.MethodDelete, pathOf(key), nil, nil, ""); got.Code != http.StatusOK {
		s.Fatalf("delete %s: %d %s", key, got.Code, got.Message)
	}
}

func pathOf(key string) string {
	namespace, name, _ := strings.Cut(key, "/")
	return configMapsIn(namespace) + "/" + name
}

// defineGears defines a custom kind, which is served some time later.
func (s *shardServer) defineGears() { s.create(crds, gearCRD) }

// gears asks for shards of a custom kind.
func (s *shardServer) gears() {
	for s.do(http.MethodGet, allGears, nil, nil, "").Code != http.StatusOK {
		if s.Context().Err() != nil {
			s.Fatal("the custom kind is not served")
		}
	}
	uids := map[string]string{}
	for i := range 24 {
		name := fmt.Sprintf("g-%02d", i)
		uids[name] = s.create(gears,
			`{"apiVersion":"shards.example.com/v1","kind":"Gear","metadata":{"name":"`+name+`"}}`)
	}
	half := part("uid", 0, 2)
	for _, r := range []shard{half, part("uid", 1, 2)} {
		got := s.list(allGears, with([]shard{r}))
		var want []string
		for _, name := range slices.Sorted(maps.Keys(uids)) {
			if r.has(uids[name]) {
				want = append(want, shardNamespace(0)+"/"+name)
			}
		}
		s.same("gears", got.names(), want)
		s.note(got.shard(), "shard of gears")
		events := s.watch(allGears, with([]shard{r}, "sendInitialEvents", "true",
			"resourceVersionMatch", "NotOlderThan", "allowWatchBookmarks", "true"))
		seen := events("BOOKMARK map[k8s.io/initial-events-end:true] false")
		s.note(fmt.Sprint(len(seen)-1 == len(want)), "watch of gears")
	}
	for _, as := range []string{"PartialObjectMetadataList", "Table"} {
		got := s.do(http.MethodGet, allGears, with([]shard{half}),
			map[string]string{"Accept": "application/json;as=" + as + ";g=meta.k8s.io;v=v1"}, "")
		s.note(got.shard(), "shard of gears as", as)
	}
	bad := s.do(http.MethodGet, allGears, url.Values{"shardSelector": {"true"}}, nil, "")
	s.note(fmt.Sprint(bad.Code, " ", bad.Reason, ": ", bad.Message), "refused list of gears")
}

// deletions deletes one shard of a collection.
func (s *shardServer) deletions() {
	half := part("uid", 0, 2)
	in := configMapsIn(shardNamespace(3))
	key := func(r shard) []string {
		return slices.DeleteFunc(s.in(r), func(key string) bool {
			return !strings.HasPrefix(key,
				shardNamespace(3)+"/")
		})
	}
	got := s.do(http.MethodDelete, in, url.Values{"shardSelector": {"x"}}, nil, "")
	s.note(fmt.Sprint(got.Code, " ", got.Reason, ": ", got.Message), "refused deletion")
	got = s.do(http.MethodDelete, in, with([]shard{half}), nil, "")
	s.same("deleted", got.names(), key(half))
	s.note(got.shard(), "shard of what is deleted")
	s.same("left", s.list(in, ours()).names(), key(part("uid", 1, 2)))
}
