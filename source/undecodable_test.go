// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
)

// An undecodable version adds the same keys as its object, by what is known of
// it.
func TestKind_AddsTheKeysOfTheUndecodable_I8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var self, owner, mapped, mine, others collector
		s := newServer()
		i := watch(t, s)
		follow(t, source.Kind(i, source.Self, source.SpecChanged), self.addKey)
		follow(t, source.Owned(i, i), owner.addKey) // both keys: its kind's scope is unknown
		follow(t, source.Mapped(i, labelKeys), mapped.add)
		of := func(label string) source.Predicate {
			return source.Where(func(d *appsv1.Deployment) bool { return d.Labels["for"] == label })
		}
		follow(t, source.Kind(i, source.Self, of("a")), mine.addKey)
		follow(t, source.Kind(i, source.Self, of("others")), others.addKey)
		owned := func(d *appsv1.Deployment) {
			yes := true
			d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "parent", Controller: &yes}}
		}
		key := kube.Key{Namespace: "prod", Name: "d"}
		spoil := func() { s.SetUndecodable(key, errors.New("replicas is a text")) }
		for _, step := range []struct {
			name                               string
			do                                 func()
			self, owner, mapped, mine, another string
		}{
			{"comes", func() { s.Write(deployment("d", label("a"), owned)) }, "d", "parent parent", "a", "d", ""},
			{"is spoiled", spoil, "d", "parent parent", "a", "d", ""},
			{"is spoiled again", spoil, "d", "parent parent", "a", "d", ""},
			{"heals", func() { s.Write(deployment("d", label("a"), owned, generation(2))) }, "d", "parent parent", "a", "d", ""},
			{"is spoiled once more", spoil, "d", "parent parent", "a", "d", ""},
			{"ends", func() { s.Delete(key) }, "d", "parent parent", "a", "d", ""},
			{"comes spoiled", spoil, "d", "", "", "d", "d"},
			{"ends, never decoded", func() { s.Delete(key) }, "d", "", "", "d", "d"},
		} {
			step.do()
			for _, got := range []struct {
				who  string
				of   *collector
				want string
			}{
				{"Self", &self, step.self}, {"Owned", &owner, step.owner}, {"Mapped", &mapped, step.mapped},
				{"Where that lets it in", &mine, step.mine}, {"Where that does not", &others, step.another},
			} {
				if keys, _ := got.of.take(); keys != got.want {
					t.Errorf("%s: %s adds %q, want %q", step.name, got.who, keys, got.want)
				}
			}
		}
	})
}
