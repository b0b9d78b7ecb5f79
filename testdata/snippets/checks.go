// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"context"
	"time"
)

type rateTable struct{}

func (*rateTable) loaded() error { return nil }

func (*rateTable) unlocksWithin(context.Context, time.Duration) error { return nil }
