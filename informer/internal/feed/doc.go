// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package feed is what a Reflector lists and watches: the ListerWatcher of one scope, with all
// that the informer does to a request before it is sent and to an object before it is stored.
//
//	Reflector ──▶ Check ──▶ Begin ──▶ list or watch ──▶ server
//	Reflector ◀── Pack ◀── transform ◀── Screen ◀── Report ◀── page or frame
//
// It runs in the Reflector's goroutine, has no lock and keeps no state.
package feed
