// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// shardServer is one of the servers that are compared.
type shardServer struct {
	*testing.T
	host   string
	client *http.Client
	facts  []fact
	made   map[string]string // the uid of each ConfigMap, by namespace/name
}

// fact is what a server answered to something, without what differs between any two servers.
type fact struct{ what, value string }

func (s *shardServer) note(value string, what ...any) {
	s.facts = append(s.facts, fact{strings.TrimSuffix(fmt.Sprintln(what...), "\n"), value})
}

// answer is a list, or why there is none.
type answer struct {
	Code            int
	Reason, Message string
	Metadata        metav1.ListMeta
	Items           []struct{ Metadata metav1.ObjectMeta }
	Rows            []struct {
		Object struct{ Metadata metav1.ObjectMeta }
	}
}

// names returns the namespaces and names of the objects, in order.
func (a answer) names() (names []string) {
	for _, item := range a.Items {
		names = append(names, item.Metadata.Namespace+"/"+item.Metadata.Name)
	}
	for _, row := range a.Rows {
		names = append(names, row.Object.Metadata.Namespace+"/"+row.Object.Metadata.Name)
	}
	return names
}

// shard returns the shard selector in the answer.
func (a answer) shard() string {
	if a.Metadata.ShardInfo == nil {
		return "none"
	}
	return a.Metadata.ShardInfo.Selector
}

// send sends a request and returns the answer's body. The caller closes it.
func (s *shardServer) send(method, path string, query url.Values, header map[string]string,
	body string) *http.Response {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.host+path+"?"+query.Encode(),
		strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	got, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	return got
}

// do sends a request and returns its answer in JSON.
func (s *shardServer) do(method, path string, query url.Values, header map[string]string,
	body string) (a answer) {
	s.Helper()
	got := s.send(method, path, query, header, body)
	defer got.Body.Close()
	if query.Has("watch") && got.StatusCode == http.StatusOK {
		s.Fatalf("the watch %s?%s is open, want a refusal", path, query.Encode())
	}
	raw, err := io.ReadAll(got.Body)
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	if err != nil {
		s.Fatalf("%s %s: %v\n%s", method, path, err, raw)
	}
	a.Code = got.StatusCode
	return a
}

// list lists with a query.
func (s *shardServer) list(path string, query url.Values) answer {
	s.Helper()
	a := s.do(http.MethodGet, path, query, nil, "")
	if a.Code != http.StatusOK {
		s.Fatalf("list %s?%s: %d %s", path, query.Encode(), a.Code, a.Message)
	}
	return a
}

// create creates an object and returns its uid.
func (s *shardServer) create(path, body string) string {
	s.Helper()
	got := s.send(http.MethodPost, path, nil, map[string]string{"Content-Type": "application/json"},
		body)
	defer got.Body.Close()
	var made struct {
		Message  string
		Metadata metav1.ObjectMeta
	}
	if err := json.NewDecoder(got.Body).Decode(&made); err != nil ||
		got.StatusCode != http.StatusCreated {
		s.Fatalf("create %s: %d %s %v", body, got.StatusCode, made.Message, err)
	}
	return string(made.Metadata.UID)
}

// configMap creates a ConfigMap.
func (s *shardServer) configMap(namespace, name string) {
	s.Helper()
	parity := "odd"
	if strings.ContainsAny(name[len(name)-1:], "02468") {
		parity = "even"
	}
	s.made[namespace+"/"+name] = s.create(configMapsIn(namespace),
		fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"of":"shards","parity":%q}}}`, name, parity))
}

// has reports whether a ConfigMap is in a shard of the uids.
func (s *shardServer) has(key string, in ...shard) bool {
	return slices.ContainsFunc(in, func(r shard) bool { return r.has(s.made[key]) })
}

// in returns the ConfigMaps in shards of the uids, in order.
func (s *shardServer) in(shards ...shard) (names []string) {
	for key := range s.made {
		if s.has(key, shards...) {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}

// protobuf returns the shard selector in a list in protobuf.
func (s *shardServer) protobuf(path string, query url.Values, accept string) string {
	s.Helper()
	got := s.send(http.MethodGet, path, query, map[string]string{"Accept": accept}, "")
	defer got.Body.Close()
	raw, err := io.ReadAll(got.Body)
	if err != nil {
		s.Fatal(err)
	}
	var envelope runtime.Unknown
	var whole corev1.ConfigMapList
	var metadata metav1.PartialObjectMetadataList
	err = envelope.Unmarshal(bytes.TrimPrefix(raw, []byte("k8s\x00")))
	switch envelope.Kind {
	case "ConfigMapList":
		err = errors.Join(err, whole.Unmarshal(envelope.Raw))
	case "PartialObjectMetadataList":
		err = errors.Join(err, metadata.Unmarshal(envelope.Raw))
		whole.ListMeta = metadata.ListMeta
	default:
		err = errors.Join(err, fmt.Errorf("the answer is a %s", envelope.Kind))
	}
	if err != nil {
		s.Fatalf("%s as %s: %v", path, accept, err)
	}
	return answer{Metadata: whole.ListMeta}.shard()
}

// frame is one event of a watch.
type frame struct {
	Type   string
	Object struct {
		Metadata struct {
			metav1.ObjectMeta `json:",inline"`
			ShardInfo         *metav1.ShardInfo
		}
	}
}

func (f frame) key() string { return f.Object.Metadata.Namespace + "/" + f.Object.Metadata.Name }

// watch opens a watch and returns a function that returns its events up to one, as type and
// key. A bookmark is shown with its annotations and whether it names a shard.
func (s *shardServer) watch(path string, query url.Values) (until func(last string) []string) {
	s.Helper()
	query.Set("watch", "true")
	query.Set("timeoutSeconds", "60")
	got := s.send(http.MethodGet, path, query, nil, "")
	context.AfterFunc(s.Context(), func() { _ = got.Body.Close() })
	if got.StatusCode != http.StatusOK {
		s.Fatalf("watch %s?%s: %s", path, query.Encode(), got.Status)
	}
	in := json.NewDecoder(bufio.NewReader(got.Body))
	return func(last string) (seen []string) {
		s.Helper()
		for !slices.Contains(seen, last) {
			var f frame
			if err := in.Decode(&f); err != nil {
				s.Fatalf("watch %s?%s: %v after %v, want %s at the end", path, query.Encode(), err,
					seen, last)
			}
			line := f.Type + " " + f.key()
			if f.Type == "BOOKMARK" {
				if f.Object.Metadata.Annotations == nil {
					continue // the server sends it when it likes
				}
				line = fmt.Sprint(f.Type, " ", f.Object.Metadata.Annotations, " ",
					f.Object.Metadata.ShardInfo != nil)
			}
			seen = append(seen, line)
		}
		return seen
	}
}

// shard is a range of the hashes of a field.
type shard struct {
	field      string
	start, end uint64 // the end is exclusive; 0: the end of all
}

// part returns the shard with an index, of the number into which a field is divided.
func part(field string, i, of uint64) shard {
	width := ^uint64(0)/of + 1
	s := shard{field: field, start: width * i, end: width * (i + 1)}
	if i == of-1 {
		s.end = 0
	}
	return s
}

func (s shard) String() string {
	end := fmt.Sprintf("0x%016x", s.end)
	if s.end == 0 {
		end = "0x10000000000000000"
	}
	return fmt.Sprintf("shardRange(object.metadata.%s, '0x%016x', '%s')", s.field, s.start, end)
}

func (s shard) has(value string) bool {
	h := fnv.New64a()
	_, _ = io.WriteString(h, value)
	sum := h.Sum64()
	return s.start <= sum && (s.end == 0 || sum < s.end)
}

// with returns a query with the shards, and further parameters as names and values.
func with(shards []shard, more ...string) url.Values {
	query := url.Values{}
	var ranges []string
	for _, s := range shards {
		ranges = append(ranges, s.String())
	}
	if ranges != nil {
		query.Set("shardSelector", strings.Join(ranges, " || "))
	}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	return query
}
