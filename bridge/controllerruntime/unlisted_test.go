// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
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
