// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"context"

	"github.com/flyball-dev/flyball/reconcile"
)

func resize(context.Context, reconcile.Key, int64) error { return nil }

var _ = setup
