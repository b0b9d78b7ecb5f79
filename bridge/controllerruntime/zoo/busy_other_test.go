// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package zoo_test

import "time"

// busy is not known on this system.
func busy() time.Duration { return 0 }
