// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build production

package main

import (
	"context"

	"github.com/flyball-dev/flyball/manager"
)

const embeddable = false // production has a cluster

func runEmbedded(context.Context, manager.Options, bool, string) error { return manager.ErrNoCluster }
