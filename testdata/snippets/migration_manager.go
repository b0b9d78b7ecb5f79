// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import "github.com/flyball-dev/flyball/manager"

func setup(*manager.Manager) error { return nil }
