// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor finds mistakes of an operator that nobody has written a check for: what it does after a
// crash, with a stale cache, with a lost answer, and when what is wanted changes. docs/doctor.md is the guide.
//
//	func TestDoctor(t *testing.T) {
//		doctor.Test(t, doctor.Operator{Main: run, CRDs: []string{"config/crd"}, Samples: []string{"config/samples"}})
//	}
//
//	samples, schemas ──▶ walks: create, change, change back, delete, create again, each field
//	                       │
//	                       ▼
//	        runs without faults ──▶ view: what is the same in each ──┐
//	                       │                                         │
//	                       ▼ writes, watches, changes                ▼
//	                     plans ──▶ runs with faults ──▶ judge: end state, deletions, numbers, rest, panics
//	                                                                 │
//	                                  repeated, tried with remedies  ▼
//	                                                              findings ──▶ text, HTML, JSON, SARIF
//
// # Concurrency
//
// Test and Examine return when all runs have ended.
package doctor
