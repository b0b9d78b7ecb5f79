// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package cputime

import "time"

// Used returns 0: the time is unknown here.
func Used() time.Duration { return 0 }
