// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate"
)

const (
	allConfigMaps   = "/api/v1/configmaps"
	shardObjects    = 200
	shardNamespaces = 8
	fullRange       = "0x0000000000000000', '0x10000000000000000"
)

func shardNamespace(i int) string { return fmt.Sprintf("shards-%d", i%shardNamespaces) }
func configMapsIn(namespace string) string {
	return "/api/v1/namespaces/" + namespace + "/configmaps"
}

// ours selects the objects that this test creates.
func ours(shards ...shard) url.Values { return with(shards, "labelSelector", "of=shards") }

// The simulated server answers requests with shard selectors as a real server does.
func TestShards_AsARealServerSelectsThem_S17(t *testing.T) {
	env, err := envtest.Start(t.Context(), envtest.Options{
		APIServerArgs: map[string][]string{"feature-gates": {"ShardedListAndWatch=true"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	}()
	client, err := rest.HTTPClientFor(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	want := observe(t, env.Config().Host, client)
	got := simulatedFacts(t)
	if minorOf(t, env.Config()) < 38 {
		got = before138(got)
	}
	if len(got) != len(want) || len(got) < 100 {
		t.Errorf("%d facts of the simulated server, %d of the real one, want as many, at least 100",
			len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%s: the simulated server (got) answers otherwise than the real one (want):\n"+
				" got  %s\n want %s",
				want[i].what, got[i].value, want[i].value)
		}
	}
}

// simulatedFacts returns the facts of the simulated server.
func simulatedFacts(t *testing.T) []fact {
	s := simulate.New(simulate.Options{Authorization: true, Tokens: map[string]simulate.User{
		"admin": {Name: "admin", Groups: []string{"system:masters"}},
	}})
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer admin")
		s.ServeHTTP(w, r)
	}))
	defer listening.Close()
	defer listening.CloseClientConnections()
	return observe(t, listening.URL, listening.Client())
}

// minorOf returns the minor release of a server.
func minorOf(t *testing.T, cfg *rest.Config) int {
	version, err := kubernetes.NewForConfigOrDie(cfg).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(version.Minor)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// before138 returns the facts of a server of release 1.38, which the simulated server follows,
// as those of 1.37: an invalid selector is an internal error, and neither lists of custom kinds
// nor those of metadata alone name their shard.
func before138(facts []fact) (out []fact) {
	for _, f := range facts {
		switch {
		case strings.HasPrefix(f.value, "400 BadRequest: invalid shard selector:"):
			f.value = strings.Replace(f.value, "400 BadRequest", "500 ", 1)
		case strings.HasPrefix(f.what, "shard of metadata"),
			strings.HasPrefix(f.what, "shard of gears"):
			f.value = "none"
		}
		out = append(out, f)
	}
	return out
}

// observe plays all requests to a server.
func observe(t *testing.T, host string, client *http.Client) []fact {
	s := &shardServer{T: t, host: host, client: client, made: map[string]string{}}
	for i := range shardNamespaces {
		s.create("/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, shardNamespace(i)))
	}
	s.defineGears()
	for i := range shardObjects {
		s.configMap(shardNamespace(i), fmt.Sprintf("c-%03d", i))
	}
	s.ranges()
	s.forms()
	s.refusals()
	s.pages()
	s.watches()
	s.recreated()
	s.gears()
	s.deletions()
	return s.facts
}

// ranges asks for each shard of the objects.
func (s *shardServer) ranges() {
	for _, field := range []string{"uid", "namespace"} {
		for _, of := range []uint64{1, 2, 3, 16} {
			for i := range of {
				r := part(field, i, of)
				s.compare(field, s.list(allConfigMaps, ours(r)).names(), r)
			}
		}
		low, high, inside := part(field, 0, 16), part(field, 15, 16), part(field, 0, 32)
		s.compare(field, s.list(allConfigMaps, ours(low, high)).names(), low, high)
		s.compare(field, s.list(allConfigMaps, ours(low, inside, low)).names(), low)
	}
	// Selectors combine.
	half := part("uid", 0, 2)
	even := slices.DeleteFunc(s.in(half),
		func(key string) bool { return !strings.ContainsAny(key[len(key)-1:], "02468") })
	labelled := with([]shard{half}, "labelSelector", "of=shards,parity=even")
	s.same("a label too", s.list(allConfigMaps, labelled).names(), even)
	for i := range 6 {
		name := fmt.Sprintf("c-%03d", i)
		for _, in := range []string{"", shardNamespace(i)} {
			path := allConfigMaps
			if in != "" {
				path = configMapsIn(in)
			}
			got := s.list(path, with([]shard{half}, "fieldSelector", "metadata.name="+name))
			var want []string
			if key := shardNamespace(i) + "/" + name; s.has(key, half) {
				want = []string{key}
			}
			s.same("a field too", got.names(), want)
			s.note(got.shard(), "shard of one object")
		}
	}
	// Objects outside of namespaces have the hash of the empty string.
	for i := range uint64(4) {
		found := s.list("/api/v1/namespaces", with([]shard{part("namespace", i, 4)})).Items
		s.note(fmt.Sprint(len(found) > 0), "namespaces by namespace", i)
	}
}

// compare notes whether a list by uids has the objects that it is to have, and the list by
// namespaces.
func (s *shardServer) compare(field string, got []string, shards ...shard) {
	s.Helper()
	if field == "uid" {
		s.same(fmt.Sprint(shards), got, s.in(shards...))
		return
	}
	s.note(fmt.Sprint(got), shards)
}

// same notes whether two lists of names are equal.
func (s *shardServer) same(what string, got, want []string) {
	s.Helper()
	s.note(fmt.Sprint(slices.Equal(got, want)), what)
	if !slices.Equal(got, want) {
		s.Errorf("%s of %s: %v, want %v", what, s.host, got, want)
	}
}

// forms asks for each form of a list which shard it names.
func (s *shardServer) forms() {
	const metadata = "as=PartialObjectMetadataList;g=meta.k8s.io;v="
	const protobuf = "application/vnd.kubernetes.protobuf"
	half := part("uid", 0, 2)
	spaced := url.Values{"shardSelector": {"  shardRange( object.metadata.uid,\n" +
		"\"0x0000000000000000\" ,r'0x8000000000000000')||(" + part("uid", 3, 4).String() + ") "}}
	s.note(s.list(allConfigMaps, spaced).shard(), "shard with spaces")
	method := url.Values{"shardSelector": {"object.f(1)." + half.String()}}
	s.note(s.list(allConfigMaps, method).shard(), "shard of a method")
	s.note(s.list(allConfigMaps, with([]shard{part("uid", 0, 1)})).shard(), "shard of all")
	s.note(s.list(allConfigMaps, nil).shard(), "shard of none")
	s.note(s.list(allConfigMaps, url.Values{"shardSelector": {""}}).shard(),
		"shard of an empty selector")
	as := func(what, accept string) {
		got := s.do(http.MethodGet, allConfigMaps, ours(half), map[string]string{"Accept": accept},
			"")
		s.note(got.shard(), what)
		s.same(accept, got.names(), s.in(half))
	}
	as("shard of metadata", "application/json;"+metadata+"v1")
	as("shard of metadata", "application/json;"+metadata+"v1beta1")
	as("shard of a table", "application/json;as=Table;g=meta.k8s.io;v=v1")
	s.note(s.protobuf(allConfigMaps, ours(half), protobuf), "shard in protobuf")
	s.note(s.protobuf(allConfigMaps, ours(half), protobuf+";"+metadata+"v1"),
		"shard of metadata in protobuf")
}

// badSelectors are refused, each for another reason.
var badSelectors = append([]string{" "}, strings.Split(strings.ReplaceAll(`shardRange(
true
shardRange()
shardRange(object.metadata.uid, 'FULL', 'x')
shardRange(metadata.uid, 'FULL')
shardRange(object.metadata.name, 'FULL')
shardRange('uid', 'FULL')
shardRange(object.metadata.uid, 0, 1)
shardRange(object.metadata.uid, object.a, '0x1')
shardRange(object.metadata.uid, '0000000000000000', '0x8000000000000000')
shardRange(object.metadata.uid, '0x', '0x8000000000000000')
shardRange(object.metadata.uid, '0x0', '0x8000000000000000')
shardRange(object.metadata.uid, '0x0000000000000000', '0x20000000000000000')
shardRange(object.metadata.uid, '0x000000000000000000', '0x8000000000000000')
shardRange(object.metadata.uid, '0x000000000000000A', '0x8000000000000000')
shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')
shardRange(object.metadata.uid, '0x9000000000000000', '0x8000000000000000')
shardRange(object.metadata.uid, 'FULL') && shardRange(object.metadata.uid, 'FULL')
!shardRange(object.metadata.uid, 'FULL')
shardRange(object.metadata.uid, 'FULL') || shardRange(object.metadata.namespace, 'FULL')
hashRange(object.metadata.uid, 'FULL')
shardRange(object['metadata'].uid, 'FULL')
shardRange(object.metadata.uid, 'FULL') ||
shardRange(object.metadata.uid, b'0x0000000000000000', '0x8000000000000000')
has(object.metadata.uid)
[1].all(x, x > 0)`, "FULL", fullRange), "\n")...)

// refusals asks with each invalid selector.
func (s *shardServer) refusals() {
	nobody := map[string]string{"Impersonate-User": "nobody"}
	note := func(query url.Values, header map[string]string, what ...any) {
		got := s.do(http.MethodGet, allConfigMaps, query, header, "")
		s.note(fmt.Sprint(got.Code, " ", got.Reason, ": ", got.Message), what...)
	}
	for _, bad := range badSelectors {
		note(url.Values{"shardSelector": {bad}}, nil, "refused list", bad)
		note(url.Values{"shardSelector": {bad}, "watch": {"true"}}, nil, "refused watch", bad)
	}
	bad := badSelectors[0]
	note(url.Values{"shardSelector": {bad}}, nobody, "forbidden list")
	note(url.Values{"shardSelector": {bad}, "fieldSelector": {"spec.x=1"}}, nil,
		"refused for its field")
	note(url.Values{"shardSelector": {bad}, "limit": {"x"}}, nil, "refused for its limit")
	note(url.Values{"shardSelector": {bad}, "continue": {"x"}}, nil,
		"refused before its continue token")
	note(url.Values{"shardSelector": {bad}, "resourceVersion": {"x"}}, nil,
		"refused before its version")
}

// pages reads lists in pages.
func (s *shardServer) pages() {
	half, quarter := part("uid", 0, 2), part("namespace", 2, 4)
	// By uid: which objects are there.
	var got []string
	for token := "first"; token != ""; {
		query := with([]shard{half}, "labelSelector", "of=shards", "limit", "7")
		if got != nil {
			query.Set("continue", token)
		}
		page := s.list(allConfigMaps, query)
		got, token = append(got, page.names()...), page.Metadata.Continue
		if token != "" && len(page.Items) != 7 || page.Metadata.RemainingItemCount != nil ||
			page.shard() != half.String() {
			s.Errorf("a page by uid of %s has %d objects, want 7: %+v", s.host, len(page.Items),
				page.Metadata)
		}
	}
	s.same("pages by uid", got, s.in(half))
	// By namespace: each page.
	for _, version := range []string{"", "0"} {
		query := with([]shard{quarter}, "labelSelector", "of=shards", "limit", "9",
			"resourceVersion", version)
		for n := 0; n == 0 || query.Get("continue") != ""; n++ {
			page := s.list(allConfigMaps, query)
			s.note(fmt.Sprint(page.names(), page.Metadata.RemainingItemCount == nil, page.shard()),
				"page", n, "at version", version)
			query.Set("continue", page.Metadata.Continue)
		}
	}
	// Without labels, in one namespace: the selector alone makes the rest unknown.
	in := configMapsIn(shardNamespace(0))
	for _, r := range []shard{part("namespace", 0, 1), part("uid", 0, 1)} {
		page := s.list(in, with([]shard{r}, "limit", "4"))
		s.note(fmt.Sprint(page.names(), page.Metadata.RemainingItemCount == nil), "page of all", r)
		next := s.list(in, with(nil, "limit", "4", "continue", page.Metadata.Continue))
		s.note(fmt.Sprint(next.names(), *next.Metadata.RemainingItemCount, next.shard()),
			"continued without a shard", r)
		next = s.list(in, with([]shard{quarter}, "limit", "4", "continue", page.Metadata.Continue))
		s.note(fmt.Sprint(next.names(), next.shard()), "continued with another shard", r)
	}
}
