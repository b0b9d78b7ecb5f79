// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"testing"

	"github.com/flyball-dev/flyball/kube"
)

func key(name string) kube.Key { return kube.Key{Namespace: "prod", Name: name} }

func TestSet_WhatARead_DependsOn_I12(t *testing.T) {
	web, other := key("web"), kube.Key{Namespace: "test", Name: "web"}
	prod, test, all := kube.Key{Namespace: "prod"}, kube.Key{Namespace: "test"}, kube.Key{}
	for _, tc := range []struct {
		name   string
		marked kube.Key
		has    []kube.Key
		hasNot []kube.Key
	}{
		{"a key", web, []kube.Key{web, prod, all}, []kube.Key{key("db"), other, test}},
		{"a namespace", prod, []kube.Key{web, key("db"), prod, all}, []kube.Key{other, test}},
		{"all", all, []kube.Key{web, other, prod, test, all}, nil},
		{"a cluster-scoped key", kube.Key{Name: "node"}, []kube.Key{{Name: "node"}, all}, []kube.Key{{Name: "other"}, prod}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s unsettledKeys
			s.Mark(tc.marked, 0)
			for _, k := range tc.has {
				if !s.Has(k) {
					t.Errorf("a read of %q does not wait for %q", k, tc.marked)
				}
			}
			for _, k := range tc.hasNot {
				if s.Has(k) {
					t.Errorf("a read of %q waits for %q", k, tc.marked)
				}
			}
			r, _, _ := s.Next()
			if s.Done(r); s.Has(all) || s.Len() != 0 {
				t.Errorf("%d are still pending after the read of %q", s.Len(), r.Key)
			}
		})
	}
}

func TestSet_AReadSettlesOnlyWhatWasMarkedBefore_I12(t *testing.T) {
	var s unsettledKeys
	s.Mark(key("web"), 0)
	r, _, _ := s.Next()
	s.Mark(key("web"), 0) // while the read runs
	if s.Done(r); !s.Has(key("web")) {
		t.Error("a read that began before the second write has settled it")
	}
	r, ok, _ := s.Next()
	if s.Done(r); !ok || s.Has(key("web")) {
		t.Error("the second read has not settled the key")
	}
	if _, ok, marked := s.Next(); ok || marked == nil {
		t.Error("there is a read although nothing is pending")
	}
}

func TestSet_TheNewestVersionIsEnough_I12(t *testing.T) {
	for _, tc := range []struct {
		marks []kube.Version
		want  kube.Version
	}{{[]kube.Version{5}, 5}, {[]kube.Version{5, 7}, 7}, {[]kube.Version{7, 5}, 7}, {[]kube.Version{5, 0}, 0}, {[]kube.Version{0, 5}, 0}} {
		var s unsettledKeys
		for _, v := range tc.marks {
			s.Mark(key("web"), v)
		}
		if r, _, _ := s.Next(); r.Version != tc.want {
			t.Errorf("marked with %v: version %d is enough, want %d", tc.marks, r.Version, tc.want)
		}
	}
}

func TestSet_WaitersRunWhenTheLastMarkIsGone_I12(t *testing.T) {
	var s unsettledKeys
	var ran []string
	note := func(what string) func() { return func() { ran = append(ran, what) } }
	s.Mark(key("a"), 0)
	s.Mark(key("b"), 0)
	s.When(key("a"), note("a"))
	s.When(kube.Key{Namespace: "prod"}, note("prod"))
	s.When(key("c"), note("c"))
	s.When(key("b"), note("stopped"))()
	for range 2 {
		r, _, _ := s.Next()
		for _, do := range s.Done(r) {
			do()
		}
	}
	if got := fmt.Sprint(ran); got != "[c a prod]" {
		t.Errorf("ran %s, want [c a prod]: at once, with its key, with the last of the namespace", got)
	}
}

func TestSet_ManyKeysOfANamespaceAreOneRead_I12(t *testing.T) {
	var s unsettledKeys
	for i := range 10_000 {
		s.Mark(key(fmt.Sprint(i)), 1)
	}
	if s.Len() > 101 {
		t.Errorf("%d marks for one namespace", s.Len())
	}
	if !s.Has(key("9999")) {
		t.Error("a marked key is not pending")
	}
	for {
		r, ok, _ := s.Next()
		if !ok {
			break
		}
		if r.Key.Name == "" && r.Version != 0 {
			t.Errorf("a namespace is settled by version %d", r.Version)
		}
		s.Done(r)
	}
	if s.Len() != 0 || s.Has(kube.Key{}) {
		t.Errorf("%d marks are left", s.Len())
	}
}

func TestSet_ClosedIsEmpty_I12(t *testing.T) {
	var s unsettledKeys
	s.Mark(key("a"), 0)
	ran := 0
	s.When(key("a"), func() { ran++ })
	for _, do := range s.Close() {
		do()
	}
	s.Mark(key("b"), 0)
	if ran != 1 || s.Len() != 0 || s.Has(kube.Key{}) {
		t.Errorf("after Close %d waiters have run and %d keys are pending, want 1 and 0", ran, s.Len())
	}
}
