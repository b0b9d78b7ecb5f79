// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
)

var scheme = runtime.NewScheme()

func setup(*manager.Manager) error { return nil }

func exitOn(error) {}

type reporter struct{ client *client.Client }

func (reporter) Run(context.Context) error { return nil }
