// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

// authorize says whether c may be asked for, and how it is refused. It is asked
// once, when the request arrives.
func (s *Server) authorize(*call) error { return nil }
