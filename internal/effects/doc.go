// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package effects reads the answers of the API server to writes and judges what each
// means for a cache of the objects.
//
//	bytes ──▶ Open ──▶ Answer ──▶ Changed, Deleted, DeletedAll, TouchedBy ──▶ kube.Written
//	                  (answer.go, page.go)  (effects.go)
//
//	status code, error ──▶ OutcomeOf ──▶ carried out, refused or unknown
//
// Its functions are pure: they have no clock, no lock and send nothing.
//
// # Promises
//
//   - R4 An effect is Removed only if the object is certainly gone, and Stored only with
//     the object as the server stored it. Whatever an answer leaves open is Touched.
//   - R14 A write is Refused only if the server has certainly not carried it out.
//
// # Testing
//
// Tables of answers. The tests of package client check the same on whole requests.
package effects
