// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package access

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
func (x *Control) impersonated(r *http.Request, user User) (User, error) {
	wanted, err := askedToBe(r.Header)
	if err != nil || wanted.Name == "" {
		return user, err
	}
	if x.Authorization {
		if err := x.mayBe(r, user, wanted); err != nil {
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
func (x *Control) mayBe(r *http.Request, user, wanted User) error {
	mode, asked := "user-info", attributesOf(r, user)
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
		asked.Verb = "impersonate-on:" + mode + ":" + asked.Verb
		if first = x.permit(asked); first == nil {
			first = x.mayTake(user, wanted, "impersonate:"+mode, authenticationGroup)
		}
		if first == nil {
			return nil
		}
	}
	err := x.mayTake(user, wanted, "impersonate", "")
	if err != nil && first != nil {
		return first
	}
	return err
}

// mayTake asks for the right to each part of a user.
func (x *Control) mayTake(user, wanted User, verb, group string) error {
	limited := group != ""
	a := Attributes{User: user, Verb: verb, Group: group, Resource: "users", Name: wanted.Name}
	if namespace, name, ok := accountOf(wanted.Name); ok {
		a.Resource, a.Namespace, a.Name = "serviceaccounts", namespace, name
	} else if name, ok := strings.CutPrefix(wanted.Name, nodePrefix); ok && limited {
		a.Resource, a.Name = "nodes", name
	}
	asks := []Attributes{a}
	if wanted.UID != "" {
		asks = append(asks, Attributes{User: user, Verb: verb, Group: authenticationGroup, Resource: "uids", Name: wanted.UID})
	}
	for _, name := range wanted.Groups {
		of := Attributes{User: user, Verb: verb, Group: group, Resource: "groups", Name: name}
		if limited && name == GroupMasters {
			return Forbidden(of, "impersonating the system:masters group is not allowed")
		}
		asks = append(asks, of)
	}
	for _, key := range slices.Sorted(maps.Keys(wanted.Extra)) {
		for _, value := range wanted.Extra[key] {
			asks = append(asks, Attributes{User: user, Verb: verb, Group: authenticationGroup, Resource: "userextras", Subresource: key, Name: value})
		}
	}
	for _, a := range asks {
		if err := x.permit(a); err != nil {
			return err
		}
	}
	return nil
}
