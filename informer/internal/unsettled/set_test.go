// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package unsettled_test

import (
	"fmt"
	"testing"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/unsettled"
)

func key(name string) base.Key { return base.Key{Namespace: "prod", Name: name} }

func TestSet_WhatARead_DependsOn_I12(t *testing.T) {
	web, other := key("web"), base.Key{Namespace: "test", Name: "web"}
	prod, test, all := base.Key{Namespace: "prod"}, base.Key{Namespace: "test"}, base.Key{}
	for _, tc := range []struct {
		name   string
		marked base.Key
		has    []base.Key
		hasNot []base.Key
	}{
		{"a key", web, []base.Key{web, prod, all}, []base.Key{key("db"), other, test}},
		{"a namespace", prod, []base.Key{web, key("db"), prod, all}, []base.Key{other, test}},
		{"all", all, []base.Key{web, other, prod, test, all}, nil},
		{"a cluster-scoped key", base.Key{Name: "node"}, []base.Key{{Name: "node"}, all}, []base.Key{{Name: "other"}, prod}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s unsettled.Set
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
	var s unsettled.Set
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
		marks []base.Version
		want  base.Version
	}{{[]base.Version{5}, 5}, {[]base.Version{5, 7}, 7}, {[]base.Version{7, 5}, 7}, {[]base.Version{5, 0}, 0}, {[]base.Version{0, 5}, 0}} {
		var s unsettled.Set
		for _, v := range tc.marks {
			s.Mark(key("web"), v)
		}
		if r, _, _ := s.Next(); r.Version != tc.want {
			t.Errorf("marked with %v: version %d is enough, want %d", tc.marks, r.Version, tc.want)
		}
	}
}

func TestSet_WaitersRunWhenTheLastMarkIsGone_I12(t *testing.T) {
	var s unsettled.Set
	var ran []string
	note := func(what string) func() { return func() { ran = append(ran, what) } }
	s.Mark(key("a"), 0)
	s.Mark(key("b"), 0)
	s.When(key("a"), note("a"))
	s.When(base.Key{Namespace: "prod"}, note("prod"))
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
	var s unsettled.Set
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
	if s.Len() != 0 || s.Has(base.Key{}) {
		t.Errorf("%d marks are left", s.Len())
	}
}

func TestSet_ClosedIsEmpty_I12(t *testing.T) {
	var s unsettled.Set
	s.Mark(key("a"), 0)
	ran := 0
	s.When(key("a"), func() { ran++ })
	for _, do := range s.Close() {
		do()
	}
	s.Mark(key("b"), 0)
	if ran != 1 || s.Len() != 0 || s.Has(base.Key{}) {
		t.Errorf("after Close %d waiters have run and %d keys are pending, want 1 and 0", ran, s.Len())
	}
}
