// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package house has only tests: the rules that the whole repository follows, such as which
// package imports which, and which files start goroutines. Each rule is a test over one walk
// of the tree. The tables are the architecture: a commit that changes one says why.
//
//	go test -count=1 ./internal/house
package house
