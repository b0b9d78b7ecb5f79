// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package kit

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
