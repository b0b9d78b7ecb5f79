// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package unsettled holds the keys of an informer whose state is not known after an own
// write, until a read from the server has settled it.
//
//	own write ──▶ Mark ──▶ Set ◀── Has: reads of the store
//	                        │  ▲
//	                   Next ▼  │ Done ──▶ functions of When
//	                       Settler ──▶ list from the server ──▶ Store
//
// A read settles only what was marked before the read began.
//
// # Promises
//
//   - I12 A key is pending from Mark until a read that began after the Mark is stored.
//
// # Testing
//
// A Set has a lock, but no clock and no goroutine. The Settler is tested as a part of the
// informer, against a simulated server.
package unsettled
