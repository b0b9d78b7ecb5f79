// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import "k8s.io/client-go/tools/events"

type reconciler struct {
	events events.EventRecorder
}
