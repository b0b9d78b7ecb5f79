// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informertest_test

import (
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/kube"
)

func TestListerOf_HasTheObjectsAsTheyAre(t *testing.T) {
	a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "mine", ResourceVersion: "41", Labels: map[string]string{"l": "x"}}}
	b := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "b"}}
	look := func(t *testing.T) {
		lister := informertest.ListerOf(a, b)
		got, err := lister.Get(kube.KeyOf(a))
		if err != nil || got.UID != "mine" || got.ResourceVersion != "41" || got == a {
			t.Errorf("a is %v, %v, want a copy with its UID and version", got, err)
		}
		if got, err := lister.Get(kube.KeyOf(b)); err != nil || got.ResourceVersion == "" {
			t.Errorf("b is %v, %v, want it with a version", got, err)
		}
		if _, err := lister.Get(types.NamespacedName{Namespace: "ns", Name: "c"}); !apierrors.IsNotFound(err) {
			t.Errorf("what is not there is %v, want NotFound", err)
		}
		if n := len(slices.Collect(lister.All())); n != 2 {
			t.Errorf("All has %d objects, want 2", n)
		}
		if found, err := lister.List(informer.QueryOptions{Selector: labels.SelectorFromSet(labels.Set{"l": "x"})}); err != nil || len(found) != 1 {
			t.Errorf("List has %d objects with the label and %v, want 1", len(found), err)
		}
	}
	look(t)
	synctest.Test(t, look) // nothing is left running
	if _, err := informertest.ListerOf[*corev1.Pod]().Get(types.NamespacedName{Name: "x"}); !apierrors.IsNotFound(err) {
		t.Errorf("a Lister of nothing says %v, want NotFound", err)
	}
}
