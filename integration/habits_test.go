// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/flyball-dev/flyball/internal/habits"
	"github.com/flyball-dev/flyball/reconcile"
)

var _ = Describe("reconcilers that make one step and return", Label("habits"), func() {
	for _, byNew := range []bool{false, true} {
		name := map[bool]string{false: "reconcile.For", true: "reconcile.New"}[byNew]
		It("come to their end by "+name+" (R15)", func(ctx context.Context) {
			ns := newNamespace(ctx)
			Expect(habits.Seed(ctx, outside, ns)).To(Succeed())
			p := newProcess(env.Config(), ns)
			Expect(habits.Add(p.Manager, byNew, reconcile.Options{})).To(Succeed())
			p.start()
			Eventually(habits.Unfinished).WithArguments(ctx, outside, ns).Should(BeEmpty())
			Expect(p.complaints()).To(BeEmpty())
			p.stop()
		})
	}
})
