// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package encoding finds objects in the JSON and protobuf of API servers
// without decoding them: the items of a list, the frames of a watch, the
// metadata and the identity of an object. It bounds what is read, and finds the
// next object after garbled bytes.
//
//	bytes ──▶ FrameReader, SplitJSONList, SplitProtobufList ──▶ bytes of one object
//
// Package restclient decodes into Go types.
package encoding
