// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// credentialExtra says of a user by what it was known.
const credentialExtra = "authentication.kubernetes.io/credential-id"

// Authenticate says who r is of: by its certificate, else by its token, and
// then who it asks to be.
func (x *Control) Authenticate(r *http.Request) (User, error) {
	user, err := x.identify(r)
	if err != nil {
		return user, err
	}
	return x.impersonated(r, user)
}

// identify says whose request it is. Who shows nothing is Options.User, or
// with Authorization nobody that is known.
func (x *Control) identify(r *http.Request) (User, error) {
	token := BearerToken(r.Header)
	accepted, gated := x.Gate(token)
	if gated && !accepted {
		return User{}, apierrors.NewUnauthorized("Unauthorized")
	}
	if user, ok := certified(r); ok {
		return user, nil
	}
	switch {
	case token != "":
		user, _, err := x.Bearer(token, []string{x.issuer()})
		if err == nil {
			return user, nil
		}
		if !gated {
			return User{}, apierrors.NewUnauthorized("Unauthorized")
		}
	case x.Authorization:
		return User{Name: anonymous, Groups: []string{groupUnauthenticated}}, nil
	}
	return User{Name: x.User, Groups: []string{GroupMasters, GroupAuthenticated}}, nil
}

// BearerToken is the token that a request shows; "": none.
func BearerToken(h http.Header) string {
	parts := strings.SplitN(strings.TrimSpace(h.Get("Authorization")), " ", 3)
	if len(parts) < 2 || !strings.EqualFold(parts[0], "bearer") {
		return ""
	}
	return parts[1]
}

// certified is who a request's certificate is of, if it has been verified.
func certified(r *http.Request) (User, bool) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.PeerCertificates) == 0 {
		return User{}, false
	}
	cert := r.TLS.PeerCertificates[0]
	user := User{Name: cert.Subject.CommonName, Groups: cert.Subject.Organization}
	if user.Name == "" {
		return User{}, false
	}
	user.Extra = map[string][]string{credentialExtra: {fmt.Sprintf("X509SHA256=%x", sha256.Sum256(cert.Raw))}}
	return user.known(), true
}

// Bearer is who a token is of, and for which of the audiences it counts. The
// error is what a review of the token says.
func (x *Control) Bearer(token string, audiences []string) (User, []string, error) {
	if user, ok := x.Tokens[token]; ok {
		return user.known(), nil, nil
	}
	return x.verify(token, audiences)
}
