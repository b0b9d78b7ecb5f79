// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package recorded holds the transcripts of package transcript against a real
// API server, so that they are what it says and nobody's opinion of it. It has
// tests alone, and knows nothing of the simulated server: while cases,
// transcripts and the player stay as they are, its result stays too.
//
//	cases, programs ──▶ real server ──▶ compared with transcript/testdata/golden
//	                                    or, with -update, written there
package recorded
