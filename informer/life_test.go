// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

func TestInformer_ReachedIsTheLowestOfItsScopes(t *testing.T) {
	f, err := NewSharedInformerFactory(&rest.Config{Host: "https://flyball.invalid"}, clientscheme.Scheme, Options{})
	if err != nil {
		t.Fatal(err)
	}
	both := For[*corev1.Pod](f, Scope{Namespaces: []string{"prod", "test"}})
	one := For[*corev1.Pod](f, Scope{Namespaces: []string{"test"}})
	if !both.OfFactory() {
		t.Error("an informer of a factory does not say so")
	}
	for _, step := range []struct {
		scope              base.ScopeID
		reached            kube.Version
		wantBoth, wantsOne kube.Version
	}{
		{one.handle.holds[0].id, 7, 0, 7},
		{both.handle.holds[0].id, 5, 5, 7},
		{both.handle.holds[0].id, 9, 7, 7},
	} {
		if _, err := both.core.indexer.Apply(store.Batch{Reached: []store.Reached{{Scope: step.scope, Version: step.reached}}}); err != nil {
			t.Fatal(err)
		}
		if got := both.Reached(); got != step.wantBoth {
			t.Errorf("after scope %d reached %d: both have %d, want %d: what has not been reached everywhere is not claimed", step.scope, step.reached, got, step.wantBoth)
		}
		if got := one.Reached(); got != step.wantsOne {
			t.Errorf("after scope %d reached %d: the one has %d, want %d", step.scope, step.reached, got, step.wantsOne)
		}
	}
}
