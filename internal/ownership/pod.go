// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"os"
	"strings"
)

// ServiceAccount is the directory of a Pod's token.
const ServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// PodNamespace returns the namespace of the Pod that this process runs in, for Leases; empty: it
// runs in none.
func PodNamespace() string {
	if named := os.Getenv("POD_NAMESPACE"); named != "" {
		return named // of a Pod whose token is elsewhere, or that has none
	}
	text, err := os.ReadFile(ServiceAccount + "/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
