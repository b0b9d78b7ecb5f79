// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"net/url"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Call is one write that is to be admitted. Objects are in the
// version of the request.
type Call struct {
	Kind            *kinds.Kind
	Namespace, Name string
	Subresource     string
	User            access.User
	URL             *url.URL       // of the request; nil: it came by none
	Operation       string         // CREATE, UPDATE, DELETE, CONNECT
	Object          *object.Object // nil for DELETE
	Old             *object.Object // nil for CREATE
	DryRun          bool
	Deleting        *metav1.DeleteOptions // of a DELETE
	// warn adds a warning to the answer.
	Warn func(text string)
}
