// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package mutation detects code that modifies the shared objects of informers. A Detector keeps
// copies of some objects and knows which handlers and reconciles ran; a Guard is its part in one
// informer. An object that differs from its copy is reported, and the copy replaces it.
package mutation
