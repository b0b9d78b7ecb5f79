// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/flyball-dev/flyball/internal/testing/habits"
	"github.com/flyball-dev/flyball/reconcile"
)

var _ = Describe("reconcilers that make one step and return", Label("habits"), func() {
	for _, omit := range []bool{false, true} {
		stop := []string{}
		for _, h := range habits.All {
			if omit && h.Omits {
				stop = append(stop, h.Name)
			}
		}
		for _, byNew := range []bool{false, true} {
			name := map[bool]string{false: "reconcile.For", true: "reconcile.New"}[byNew]
			It(fmt.Sprintf("come to their end by %s, with OmitOwnEvents %t all but those that it cannot serve (R15)", name, omit), func(ctx context.Context) {
				ns := newNamespace(ctx)
				Expect(habits.Seed(ctx, outside, ns)).To(Succeed())
				p := newProcess(env.Config(), ns)
				Expect(habits.Add(p.Manager, byNew, reconcile.Options{OmitOwnEvents: omit})).To(Succeed())
				p.start()
				Eventually(habits.Unfinished).WithArguments(ctx, outside, ns).Should(HaveExactElements(stop))
				Expect(p.complaints()).To(BeEmpty())
				p.stop()
				Expect(habits.Unfinished(ctx, outside, ns)).To(HaveExactElements(stop), "after the end")
			})
		}
	}
})
