// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import "net/netip"

// workloads are the actors that make Pods run.
func workloads(c *company) []actor {
	return []actor{
		deploymentController{c},
		replicaSetController{c},
		statefulSetController{c},
		daemonSetController{c},
		jobController{c},
		endpointKeeper{c},
		nodeKeeper{c},
		podKeeper{c, map[netip.Addr]Reference{}},
	}
}
