// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

const (
	// tokenIssuer is who issues the tokens of ServiceAccounts unless Control.Issuer does.
	tokenIssuer = "https://kubernetes.default.svc.cluster.local"
	// tokenLeeway is by how much clocks may differ.
	tokenLeeway = time.Minute
	tokenAlg    = "EdDSA"
)

var errInvalidToken = errors.New("invalid bearer token")

// Claims are what a ServiceAccount's token says.
type Claims struct {
	Audience   []string      `json:"aud"`
	Expiry     int64         `json:"exp"` // seconds since 1970, as all times
	IssuedAt   int64         `json:"iat"`
	Issuer     string        `json:"iss"`
	ID         string        `json:"jti"`
	Kubernetes AccountClaims `json:"kubernetes.io"`
	NotBefore  int64         `json:"nbf"`
	Subject    string        `json:"sub"`
}

type AccountClaims struct {
	Namespace string   `json:"namespace"`
	Node      *BoundTo `json:"node,omitempty"`
	Pod       *BoundTo `json:"pod,omitempty"`
	Secret    *BoundTo `json:"secret,omitempty"`
	Account   BoundTo  `json:"serviceaccount"`
}

// BoundTo is an object without which a token does not count.
type BoundTo struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// issuer is who issues the tokens of ServiceAccounts, and the audience that the server is.
func (x *Control) issuer() string { return cmp.Or(x.Issuer, tokenIssuer) }

// tokenKey signs the tokens of a server. Its seed decides it.
func tokenKey(seed uint64) ed25519.PrivateKey {
	sum := sha256.Sum256(fmt.Appendf(nil, "service account tokens %d", seed))
	return ed25519.NewKeyFromSeed(sum[:])
}

// Sign makes a token of claims.
func (x *Control) Sign(c Claims) (string, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	key := tokenKey(x.Seed)
	head := fmt.Sprintf(`{"alg":%q,"kid":"simulated-%d"}`, tokenAlg, x.Seed)
	part := base64.RawURLEncoding.EncodeToString
	text := part([]byte(head)) + "." + part(body)
	return text + "." + part(ed25519.Sign(key, []byte(text))), nil
}

// parse reads a token and holds its signature.
func (x *Control) parse(token string) (c Claims, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, errInvalidToken
	}
	var raw [3][]byte
	for i, part := range parts {
		if raw[i], err = base64.RawURLEncoding.DecodeString(part); err != nil {
			return c, errInvalidToken
		}
	}
	var head struct {
		Alg string `json:"alg"`
	}
	if json.Unmarshal(raw[0], &head) != nil || json.Unmarshal(raw[1], &c) != nil || c.Issuer != x.issuer() {
		return c, errInvalidToken
	}
	key, _ := tokenKey(x.Seed).Public().(ed25519.PublicKey)
	if head.Alg != tokenAlg || !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), raw[2]) {
		return c, invalidToken("go-jose/go-jose: error in cryptographic primitive")
	}
	return c, nil
}

func invalidToken(why string) error { return fmt.Errorf("[%w, %s]", errInvalidToken, why) }

// verify is who a ServiceAccount's token is of, and for which of the audiences
// it counts. The error is what a review of the token says.
func (x *Control) verify(token string, audiences []string) (User, []string, error) {
	c, err := x.parse(token)
	if err != nil {
		return User{}, nil, err
	}
	common := slices.DeleteFunc(slices.Clone(c.Audience), func(a string) bool { return !slices.Contains(audiences, a) })
	if len(common) == 0 {
		return User{}, nil, invalidToken(fmt.Sprintf("token audiences %q is invalid for the target audiences %q", c.Audience, audiences))
	}
	at := time.Now()
	switch {
	case at.Add(-tokenLeeway).After(time.Unix(c.Expiry, 0)):
		return User{}, nil, invalidToken("service account token has expired")
	case at.Add(tokenLeeway).Before(time.Unix(c.NotBefore, 0)):
		return User{}, nil, invalidToken("service account token is not valid yet")
	}
	if err := x.stands(c.Kubernetes); err != nil {
		return User{}, nil, invalidToken(err.Error())
	}
	k := c.Kubernetes
	user := User{Name: AccountUser(k.Namespace, k.Account.Name), UID: string(k.Account.UID), Groups: accountGroups(k.Namespace)}
	user.Extra = map[string][]string{credentialExtra: {"JTI=" + c.ID}}
	for what, bound := range map[string]*BoundTo{"pod": k.Pod, "node": k.Node} {
		if bound != nil {
			user.Extra["authentication.kubernetes.io/"+what+"-name"] = []string{bound.Name}
			user.Extra["authentication.kubernetes.io/"+what+"-uid"] = []string{string(bound.UID)}
		}
	}
	return user.known(), common, nil
}

// stands reports what is gone of what a token is bound to.
func (x *Control) stands(k AccountClaims) error {
	account := x.held("serviceaccounts", k.Namespace, k.Account.Name)
	switch {
	case account == nil:
		return fmt.Errorf("serviceaccounts %q not found", k.Account.Name)
	case account.Meta().GetUID() != k.Account.UID:
		return fmt.Errorf("service account UID (%s) does not match claim (%s)", account.Meta().GetUID(), k.Account.UID)
	}
	bounds := map[string]*BoundTo{"pods": k.Pod, "secrets": k.Secret}
	if k.Pod == nil { // else it only says where the Pod runs
		bounds["nodes"] = k.Node
	}
	for resource, bound := range bounds {
		if bound == nil {
			continue
		}
		namespace := k.Namespace
		if resource == "nodes" {
			namespace = ""
		}
		obj := x.held(resource, namespace, bound.Name)
		if obj == nil || obj.Meta().GetUID() != bound.UID || endedBefore(obj, time.Now().Add(-tokenLeeway)) {
			return errors.New("service account token has been invalidated")
		}
	}
	return nil
}

// endedBefore reports whether an object was to be gone at a time.
func endedBefore(obj *object.Object, at time.Time) bool {
	deleted := obj.Meta().GetDeletionTimestamp()
	return !object.Unset(deleted) && deleted.Time.Before(at)
}

// held is an object of the core group; nil: there is none.
func (x *Control) held(resource, namespace, name string) *object.Object {
	return x.Objects.Get(schema.GroupResource{Resource: resource}, types.NamespacedName{Namespace: namespace, Name: name})
}
