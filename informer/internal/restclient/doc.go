// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package restclient lists and watches one kind over HTTP: it finds the resource
// by discovery, asks for protobuf where the type has it, decodes each object
// alone, and turns what servers answer into named errors. Requests wait for the
// server's gate.
//
//	List, Watch ──▶ gate ──▶ HTTP ──▶ encoding ──▶ Decoder ──▶ listwatch.Page, Frame
//
// An object that cannot be decoded costs no other: it has its key, its metadata
// where that can be read, and the error. A body, a frame and the objects made
// of them have bounds. It decides nothing: what to do next is package steps'.
package restclient
