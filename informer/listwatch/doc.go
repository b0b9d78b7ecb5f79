// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package listwatch is how an informer asks for objects: a ListerWatcher lists
// them page by page and watches for changes. Informers of a factory have one
// over HTTP; implement the interface and pass it to informer.New to feed an
// informer from somewhere else. The rules are those of the Kubernetes watch API.
package listwatch
