// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build go1.27

package restclient

// cancelsHTTP1: since Go 1.27, closing a body of HTTP/1 that is being read waits for that read, on a
// lock, which stops the time in a bubble of synctest. Its request is cancelled instead.
const cancelsHTTP1 = true
