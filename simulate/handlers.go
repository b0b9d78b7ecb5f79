// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// handlerKey is what is asked for in a way of its own.
type handlerKey struct {
	resource          schema.GroupResource
	subresource, verb string
}

type handler func(s *Server, w http.ResponseWriter, c *call) error

// handlerOf is who answers c instead of the ordinary verbs; nil: those do.
func handlerOf(c *call) handler {
	key := handlerKey{c.kind.resource(), c.subresource, c.verb}
	switch key {
	}
	if c.subresource != "" && c.subresource != "status" {
		return func(*Server, http.ResponseWriter, *call) error {
			return apierrors.NewInternalError(fmt.Errorf("the simulated server does not serve %s/%s", c.kind.Resource, c.subresource))
		}
	}
	return nil
}
