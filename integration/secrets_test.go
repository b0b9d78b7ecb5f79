// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/internal/testing/logtest"
)

var _ = Describe("a program that handles Secrets and tokens", func() {
	It("says nothing of them at -v=10: in no log, span, event, metric, probe or snapshot (C13)", Serial, func(ctx context.Context) {
		ns := newNamespace(ctx)
		_, err := api.CoreV1().ServiceAccounts(ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "canary"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		lines, err := logtest.Leaks(ctx, env.Config(), ns)
		Expect(err).NotTo(HaveOccurred())
		Expect(lines).To(BeEmpty())
	})
})
