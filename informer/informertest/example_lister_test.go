// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informertest_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/kube"
)

func TestReadsTheSite(t *testing.T) {
	site := &webv1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	websites := informertest.ListerOf(site) // an informer.Lister[*webv1.Website]
	if _, err := websites.Get(kube.KeyOf(site)); err != nil {
		t.Error(err)
	}
}

// A reconciler that reads from Listers is tested without a server.
func ExampleListerOf() {
	site := &webv1.Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"},
		Spec:       webv1.WebsiteSpec{Content: "It balances."},
	}
	websites := informertest.ListerOf(site) // an informer.Lister[*webv1.Website]

	found, err := websites.Get(kube.KeyOf(site))
	fmt.Println(found.Spec.Content, err)
	_, err = websites.Get(kube.Key{Namespace: "default", Name: "other"})
	fmt.Println(err)
	// Output:
	// It balances. <nil>
	// website "default/other" not found
}
