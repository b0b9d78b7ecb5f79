// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// RereadToken makes connections of cfg reread the token's file when the server
// rejects the token, not only once a minute: a token rotated early then costs
// one failed request, not a minute.
func RereadToken(cfg *rest.Config) {
	if cfg.BearerTokenFile == "" {
		return
	}
	cfg.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedFileTokenSource(cfg.BearerTokenFile)))
	cfg.BearerToken, cfg.BearerTokenFile = "", ""
}
