// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

// User is who a request is of.
type User struct {
	Name string
	UID  string
	// Groups it is in, besides those that everybody is in who is known.
	Groups []string
	// Extra is what else is known of it.
	Extra map[string][]string
}

// Groups that the server itself puts users into.
const (
	groupMasters       = "system:masters"
	groupAuthenticated = "system:authenticated"
)

// authenticate says who c is of.
func (s *Server) authenticate(*call) User {
	return User{Name: s.user, Groups: []string{groupMasters, groupAuthenticated}}
}
