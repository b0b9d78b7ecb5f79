// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"iter"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

// named yields the names of objects.
func named[T kube.Object](ctx context.Context, c *client.Client, opts ...client.Option) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for obj, err := range client.List[T](ctx, c, opts...) {
			name := ""
			if err == nil {
				name = obj.GetName()
			}
			if !yield(name, err) {
				return
			}
		}
	}
}
