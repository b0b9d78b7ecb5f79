// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

import (
	"errors"
	"net"
	"net/url"
)

var (
	ErrSilent  = errors.New("the server sent nothing more on an open stream")
	ErrOverdue = errors.New("the server did not end the stream at its timeout")
	ErrSlow    = errors.New("the server did not complete a page of the list in time")
	ErrEndless = errors.New("the server did not end the streaming list in time")
	ErrStuck   = errors.New("the pages of the list do not advance")
	ErrOlder   = errors.New("the list is older than the version asked for")
	ErrMixed   = errors.New("they do not belong together")
)

// IsNetwork reports whether err is an error of the connection.
func IsNetwork(err error) bool {
	_, isURL := errors.AsType[*url.Error](err)
	_, isNet := errors.AsType[net.Error](err)
	return isURL || isNet
}

// TextOf returns the text of err, empty for nil.
func TextOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
