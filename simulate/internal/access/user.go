// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"
	"strings"
)

// User is who a request is of.
type User struct {
	Name string
	UID  string
	// Groups it is in, besides those that the server puts it into.
	Groups []string
	// Extra is what else is known of it.
	Extra map[string][]string
}

// Groups and users that the server itself knows.
const (
	GroupMasters         = "system:masters" // may do everything
	GroupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
	groupAccounts        = "system:serviceaccounts"
	groupNodes           = "system:nodes"
	anonymous            = "system:anonymous"
	accountPrefix        = "system:serviceaccount:"
	nodePrefix           = "system:node:"
)

// in reports whether the user is in a group.
func (u User) in(group string) bool { return slices.Contains(u.Groups, group) }

// known is the user with the group that says that the server knows it.
func (u User) known() User {
	if !u.in(GroupAuthenticated) {
		u.Groups = append(slices.Clone(u.Groups), GroupAuthenticated)
	}
	return u
}

// AccountUser is the name of a ServiceAccount as a user.
func AccountUser(namespace, name string) string { return accountPrefix + namespace + ":" + name }

func accountGroups(namespace string) []string {
	return []string{groupAccounts, groupAccounts + ":" + namespace}
}

// accountOf is the ServiceAccount that a user's name is of.
func accountOf(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, accountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}
