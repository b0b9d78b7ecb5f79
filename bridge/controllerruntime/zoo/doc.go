// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package zoo tests package doctor with the patterns of bugs that others have published. It has only
// tests.
//
// It has one operator, written with controller-runtime, which is correct. A switch plants one bug at
// a time: each has the pattern of a published bug of a public operator, and none has its code.
// Doctor has to find them by its default plans, and to find nothing in the correct operator.
// docs/doctor-bugs.md has the results.
//
//	cluster_test.go    the custom resource, and the objects that it wants
//	operator_test.go   the operator
//	planted_test.go    what the switches change in it
//	bugs_test.go       the bugs
//	zoo_test.go        how many of them are found
package zoo
