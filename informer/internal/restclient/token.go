// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// RereadToken has a connection of cfg read the token's file again as soon as
// the server refuses the token, and once a minute as the field does: a token
// that is rotated before its time costs one try, not a minute.
func RereadToken(cfg *rest.Config) {
	if cfg.BearerTokenFile == "" {
		return
	}
	cfg.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedFileTokenSource(cfg.BearerTokenFile)))
	cfg.BearerToken, cfg.BearerTokenFile = "", ""
}
