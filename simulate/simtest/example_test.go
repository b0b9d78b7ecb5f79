// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

func TestWrites(t *testing.T) {
	site := &webv1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	server := simtest.New(t, testScheme(), site)
	if err := server.Client.Get(t.Context(), kube.KeyOf(site), site); err != nil {
		t.Error(err)
	}
}

func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := webv1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
}

// The server has the objects, and ends with the test.
func ExampleNew() {
	var t *testing.T // that of TestWrites

	site := &webv1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	server := simtest.New(t, testScheme(), site)
	if err := server.Client.Get(t.Context(), kube.KeyOf(site), site); err != nil {
		t.Error(err)
	}
}
