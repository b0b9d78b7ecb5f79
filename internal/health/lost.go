// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
)

// lostText describes reconciles that ignore their cancelled context, with stacks.
func lostText(s reconcile.Snapshot, lost []reconcile.Running, stacks map[string]string) string {
	return fmt.Sprintf("%d of %d workers are lost: the reconcile ignores its context, cancelled at the hard deadline of %v: %s",
		len(lost), s.Workers, s.HardDeadline, describe(lost, stacks))
}

func cut(stack string) string { return stack[:min(len(stack), longestStack)] }

// describe lists reconciles, the first ones with their stacks.
func describe(running []reconcile.Running, stacks map[string]string) string {
	var all []string
	for _, r := range running {
		text := fmt.Sprintf("%s (reconcileID %s, since %s)", r.Key, r.ID, r.Since.Format(time.RFC3339))
		if stack := stacks[r.ID]; stack != "" && len(all) < mostStacks {
			text += "\n" + cut(stack) + "\n"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}
