// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package restclient lists and watches one kind over HTTP. It finds the
// resource by discovery, requests protobuf if the type supports it, decodes
// each object separately, and maps the server's answers to named errors.
// Requests wait for the server's gate. Objects of a streaming list that have
// arrived together are decoded on all processors.
//
//	List, Watch ──▶ gate ──▶ HTTP ──▶ encoding ──▶ Decoder ──▶ listwatch.Page, Frame
//
// An undecodable object affects no other: its item has the key, the metadata if
// readable, and the error. Bodies, frames and decoded objects are limited in
// size. What to do next is decided in package steps.
package restclient
