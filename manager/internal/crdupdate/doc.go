// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package crdupdate decides whether a CustomResourceDefinition may replace another.
//
//	have, on the server ─┐
//	                     ├─▶ Decide ─▶ keep, create, update, or an error that names
//	want, in the program ┘               each change that takes something from clients
//
// The annotation Annotation lists the hashes of the specs and labels that programs have installed. By
// it a program whose spec was replaced knows that it is older, and leaves the newer one.
// A program with a new spec replaces the one on the server, unless that narrows it.
//
// # What narrows
//
// A value, stored or sent, that the old schema keeps and accepts and the new one drops or
// refuses; a version that is no longer served or kept while objects may be stored in it; a
// name, a subresource or a selectable field that requests use. Where keywords cannot be
// compared (patterns, formats, CEL rules, oneOf), a change counts as narrowing. A property
// that becomes required has to have a default. Without a conversion, a version that becomes
// the stored one keeps what the stored one before it had. The bounds of quantities that
// flyball crds writes narrow nothing: what they refuse, no program decodes.
//
// # Promises
//
// O6 to O8 of package manager.
//
// # Concurrency
//
// All functions are pure.
//
// # Testing
//
// Tables, and a fuzz target that holds the comparison against a small validator.
package crdupdate
