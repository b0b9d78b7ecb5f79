// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	impersonateUser  = "Impersonate-User"
	impersonateUID   = "Impersonate-Uid"
	impersonateGroup = "Impersonate-Group"
	impersonateExtra = "Impersonate-Extra-"

	authenticationGroup = "authentication.k8s.io"
)

// impersonated is who a user asks to be, if it may; itself when it does not ask.
func (s *Server) impersonated(c *call, user User) (User, error) {
	wanted, err := askedToBe(c.Header)
	if err != nil || wanted.Name == "" {
		return user, err
	}
	if s.authorization {
		if err := s.mayBe(c, user, wanted); err != nil {
			return user, err
		}
	}
	if namespace, _, ok := accountOf(wanted.Name); ok && len(wanted.Groups) == 0 {
		wanted.Groups = accountGroups(namespace)
	}
	switch {
	case wanted.Name == anonymous && !wanted.in(groupUnauthenticated):
		wanted.Groups = append(wanted.Groups, groupUnauthenticated)
	case wanted.Name != anonymous && !wanted.in(groupUnauthenticated):
		wanted = wanted.known()
	}
	return wanted, nil
}

// askedToBe is the user that the headers ask for; without a name: none.
func askedToBe(h http.Header) (User, error) {
	user := User{Name: h.Get(impersonateUser), UID: h.Get(impersonateUID), Groups: slices.Clone(h[impersonateGroup])}
	for name, values := range h {
		key, ok := strings.CutPrefix(name, impersonateExtra)
		if !ok {
			continue
		}
		if user.Extra == nil {
			user.Extra = map[string][]string{}
		}
		key = strings.ToLower(key)
		if plain, err := url.PathUnescape(key); err == nil {
			key = plain
		}
		user.Extra[key] = append(user.Extra[key], values...)
	}
	if user.Name == "" && (user.UID != "" || user.Groups != nil || user.Extra != nil) {
		return user, apierrors.NewBadRequest(fmt.Sprintf("requested &user.DefaultInfo{Name:\"\", UID:%q, Groups:%#v, Extra:%#v} without impersonating a user name", user.UID, user.Groups, user.Extra))
	}
	return user, nil
}

// mayBe reports how a user is refused to be another. Rights that hold for some
// requests alone are asked first; their refusal is what is said.
func (s *Server) mayBe(c *call, user, wanted User) error {
	mode, asked := "user-info", attributesOf(c.Request, user)
	plain := wanted.UID == "" && len(wanted.Groups) == 0 && len(wanted.Extra) == 0
	_, _, account := accountOf(wanted.Name)
	node := strings.HasPrefix(wanted.Name, nodePrefix)
	switch {
	case account && plain:
		mode = "serviceaccount"
	case node && plain:
		mode = "arbitrary-node"
	case account || node:
		mode = ""
	}
	var first error
	if mode != "" {
		asked.verb = "impersonate-on:" + mode + ":" + asked.verb
		if first = s.permit(asked); first == nil {
			first = s.mayTake(user, wanted, "impersonate:"+mode, authenticationGroup)
		}
		if first == nil {
			return nil
		}
	}
	err := s.mayTake(user, wanted, "impersonate", "")
	if err != nil && first != nil {
		return first
	}
	return err
}

// mayTake asks for the right to each part of a user.
func (s *Server) mayTake(user, wanted User, verb, group string) error {
	limited := group != ""
	a := attributes{user: user, verb: verb, group: group, resource: "users", name: wanted.Name}
	if namespace, name, ok := accountOf(wanted.Name); ok {
		a.resource, a.namespace, a.name = "serviceaccounts", namespace, name
	} else if name, ok := strings.CutPrefix(wanted.Name, nodePrefix); ok && limited {
		a.resource, a.name = "nodes", name
	}
	asks := []attributes{a}
	if wanted.UID != "" {
		asks = append(asks, attributes{user: user, verb: verb, group: authenticationGroup, resource: "uids", name: wanted.UID})
	}
	for _, name := range wanted.Groups {
		of := attributes{user: user, verb: verb, group: group, resource: "groups", name: name}
		if limited && name == groupMasters {
			return errForbidden(of, "impersonating the system:masters group is not allowed")
		}
		asks = append(asks, of)
	}
	for _, key := range slices.Sorted(maps.Keys(wanted.Extra)) {
		for _, value := range wanted.Extra[key] {
			asks = append(asks, attributes{user: user, verb: verb, group: authenticationGroup, resource: "userextras", subresource: key, name: value})
		}
	}
	for _, a := range asks {
		if err := s.permit(a); err != nil {
			return err
		}
	}
	return nil
}
