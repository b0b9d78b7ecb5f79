// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package encoding finds objects in the bytes of API servers, JSON and protobuf,
// without decoding them: the items of a list, the frames of a watch, the
// metadata and the identity of one object. It bounds what is read, and finds
// where the next object begins after bytes that make no sense.
//
//	bytes ──▶ FrameReader, SplitJSONList, SplitProtobufList ──▶ bytes of one object
//
// Decoding into Go types is up to package restclient.
package encoding
