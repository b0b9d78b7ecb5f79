// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/internal/testing/logtest"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

func TestManager_SecretsAreInNothingThatItSays_C13(t *testing.T) {
	server := simtest.New(t, clientscheme.Scheme,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vault"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "vault", Name: "canary"}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	lines, err := logtest.Leaks(ctx, server.Config, "vault")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines {
		if i < 5 {
			t.Errorf("a secret is said: %.2000s", line)
		}
	}
}
