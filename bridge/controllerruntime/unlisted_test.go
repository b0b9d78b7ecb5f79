// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A read of a kind without lists is refused, in every form, and nothing waits for it later.
func TestCache_ReadOfAKindWithoutListsIsRefused_A38(t *testing.T) {
	_, c, cl := started(t, cache.Options{})
	of := func(gv schema.GroupVersion, kind string) client.Object {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(gv.WithKind(kind))
		return obj
	}
	for name, row := range map[string]struct {
		obj  client.Object
		says string
	}{
		"a binding":               {&corev1.Binding{}, "BindingList"},
		"a review":                {&authorizationv1.SelfSubjectAccessReview{}, "SelfSubjectAccessReviewList"},
		"an unstructured binding": {of(corev1.SchemeGroupVersion, "Binding"), "cannot list it"},
		"an unstructured review":  {of(authorizationv1.SchemeGroupVersion, "SelfSubjectAccessReview"), "cannot list it"},
	} {
		err := cl.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, row.obj)
		if err == nil || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "not served") {
			t.Errorf("%s: %v, want an error that says %q and not that the kind is not served", name, err, row.says)
		}
	}
	if n := len(c.slots()); n != 0 {
		t.Errorf("%d informers are left, want none", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !c.WaitForCacheSync(ctx) {
		t.Error("the cache waits for an informer that cannot sync")
	}
}

// A read of a kind that may not be listed, or is not served any more, is answered at once and by
// name, and nothing waits for it later. When the right is there, the next read has it.
func TestCache_ReadOfARefusedKindIsAnsweredAtOnce_A38(t *testing.T) {
	server, c, cl := started(t, cache.Options{}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	configMaps := schema.GroupResource{Resource: "configmaps"}
	server.Deny("list", configMaps)
	server.Deny("watch", configMaps)
	loose := &unstructured.Unstructured{}
	loose.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	for _, obj := range []client.Object{&corev1.ConfigMap{}, loose, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}} {
		for range 2 {
			err := cl.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, obj)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ConfigMap") || !strings.Contains(err.Error(), "list and watch") {
				t.Errorf("%T: got %v, want the refusal with the kind and the rights", obj, err)
			}
		}
	}
	if n := len(c.slots()); n != 0 {
		t.Errorf("%d informers are left, want none", n)
	}
	server.Allow("list", configMaps)
	server.Allow("watch", configMaps)
	if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("with the rights: %v", err)
	}
}

// An informer that somebody watches waits for its right; a read of it does not.
func TestCache_ReadOfARefusedKindLeavesItsWatch_A38(t *testing.T) {
	server, c, cl := started(t, cache.Options{})
	server.Deny("list", schema.GroupResource{Resource: "configmaps"})
	server.Deny("watch", schema.GroupResource{Resource: "configmaps"})
	if _, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want the refusal", err)
	}
	if n := len(c.slots()); n != 1 {
		t.Errorf("%d informers are left, want the one that is watched", n)
	}
}

// Many reads of a refused kind end, whichever of them takes the informer away, and an informer that
// is asked for meanwhile stays.
func TestCache_ReadsOfARefusedKindEndTogether_A38(t *testing.T) {
	server, c, cl := started(t, cache.Options{})
	for _, verb := range []string{"list", "watch"} {
		server.Deny(verb, schema.GroupResource{Resource: "configmaps"})
	}
	var reads sync.WaitGroup
	for range 20 {
		reads.Go(func() {
			if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}); err == nil {
				t.Error("a read of a refused kind has no error")
			}
		})
	}
	if _, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
		t.Error(err)
	}
	reads.Wait()
	if n := len(c.slots()); n != 1 {
		t.Errorf("%d informers are left, want the one that was asked for", n)
	}
}
