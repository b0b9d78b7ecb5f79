// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import "k8s.io/client-go/informers/internalinterfaces"

var _ internalinterfaces.SharedInformerFactory = newWebsiteInformers(nil)
