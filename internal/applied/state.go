// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package applied

import (
	"crypto/sha256"
	"encoding/json"
	"hash"
	"maps"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/jsonspan"
	"github.com/flyball-dev/flyball/kube"
)

// Digest identifies a content. Different contents have different digests.
type Digest [sha256.Size]byte

// WantedOf returns the digest of an apply: of what is sent, and of how.
func WantedOf(body []byte, force bool, validation string) Digest {
	h := sha256.New()
	part(h, body)
	part(h, []byte(validation))
	part(h, []byte(strconv.FormatBool(force)))
	return digest(h)
}

// Part of an object that an apply can change. The other part is the rest.
type Part uint8

const (
	// Whole: there is no rest.
	Whole Part = iota
	// Main: all except the status.
	Main
	// Status alone.
	Status
)

// State of an object, as far as it decides whether an apply is known.
type State struct {
	UID     types.UID
	Version kube.Version // 0: unknown
	Own     Digest       // of the part that the apply can change
	Rest    Digest       // of the rest
}

// StateOf returns the state of obj for applies that can change part of it. The server's
// bookkeeping is in neither digest: the version and managedFields; the generation is in that
// of the main part, because it shows changes that were changed back. ok is false if obj does
// not marshal. obj is not modified.
func StateOf(obj kube.Object, own Part) (s State, ok bool) {
	s = State{UID: obj.GetUID(), Version: kube.ParseVersion(obj.GetResourceVersion())}
	text, err := json.Marshal(plain(obj))
	if err != nil {
		return s, false
	}
	main, status := sha256.New(), sha256.New()
	err = jsonspan.EachMember(text, func(name []byte, start, end int) bool {
		h := main
		switch string(name) {
		case "apiVersion", "kind":
			return true
		case "status":
			if own != Whole {
				h = status
			}
		}
		part(h, name)
		part(h, text[start:end])
		return true
	})
	s.Own, s.Rest = digest(main), digest(status)
	if own == Status {
		s.Own, s.Rest = s.Rest, s.Own
	}
	return s, err == nil
}

// follows reports whether an object in state s is, in the part that an apply can change, what
// the apply has made of it in state answered.
func (s State) follows(answered State) bool {
	if s.UID == "" || s.UID != answered.UID || s.Own != answered.Own || answered.Version == 0 {
		return false
	}
	return s.Version == answered.Version || s.Version > answered.Version && s.Rest != answered.Rest
}

// plain returns a copy of obj without bookkeeping. It shares with obj what it does not change.
func plain(obj kube.Object) kube.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		fields := maps.Clone(u.Object)
		if metadata, ok := fields["metadata"].(map[string]any); ok {
			metadata = maps.Clone(metadata)
			delete(metadata, "managedFields")
			delete(metadata, "resourceVersion")
			fields["metadata"] = metadata
		}
		return &unstructured.Unstructured{Object: fields}
	}
	v := reflect.New(reflect.TypeOf(obj).Elem())
	v.Elem().Set(reflect.ValueOf(obj).Elem())
	c := v.Interface().(kube.Object)
	c.SetManagedFields(nil)
	c.SetResourceVersion("")
	return c
}

// part adds a text to h such that no two sequences of texts are alike.
func part(h hash.Hash, text []byte) {
	h.Write(strconv.AppendInt(nil, int64(len(text)), 10))
	h.Write([]byte{':'})
	h.Write(text)
}

func digest(h hash.Hash) (d Digest) {
	h.Sum(d[:0])
	return d
}
