// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package recorded compares the transcripts of package transcript with a real API server,
// so they are what that server answers. It has only tests and does not use the simulated
// server: its result changes only with the cases, the transcripts and the player.
//
//	cases, programs ──▶ real server ──▶ compared with transcript/testdata/golden
//	                                    or, with -update, written there
package recorded
