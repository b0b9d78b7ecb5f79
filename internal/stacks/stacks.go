// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package stacks finds the stack of a goroutine, such as one that hangs.
package stacks

import (
	"bytes"
	"runtime"
	"strconv"
	"sync"
)

// most is the limit of a dump in bytes.
const most = 64 << 20

// ID is a goroutine's number in stack dumps. 0: none.
type ID uint64

// Self returns the ID of the calling goroutine. It takes about a microsecond.
func Self() ID {
	var buf [64]byte
	first := buf[:runtime.Stack(buf[:], false)] // goroutine 12 [running]: …
	first = bytes.TrimPrefix(first, []byte("goroutine "))
	number, _, _ := bytes.Cut(first, []byte(" "))
	id, _ := strconv.ParseUint(string(number), 10, 64)
	return ID(id)
}

// Dump holds the stacks of all goroutines, up to 64 MiB, taken at the first
// call of Of, which briefly stops the whole process. The zero value is ready to
// use. Safe for concurrent use.
type Dump struct {
	once sync.Once
	text []byte
}

// Of returns the stack of id.
func (d *Dump) Of(id ID) string {
	d.once.Do(func() { d.text = all() })
	return find(d.text, id)
}

func all() []byte {
	for size := 256 << 10; ; size *= 4 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size || size >= most {
			return buf[:n]
		}
	}
}

// find returns the part of text about id.
func find(text []byte, id ID) string {
	header := append(strconv.AppendUint([]byte("goroutine "), uint64(id), 10), ' ')
	for stack := range bytes.SplitSeq(text, []byte("\n\n")) {
		if id != 0 && bytes.HasPrefix(stack, header) {
			return string(stack)
		}
	}
	return "the stack was not found among those of all goroutines"
}

// Bubble names the testing/synctest bubble of the calling goroutine as stacks do, such as
// "synctest bubble 7". Empty: it is in none.
func Bubble() string {
	const mark = "synctest bubble "
	head := make([]byte, 256)
	_, after, found := bytes.Cut(head[:runtime.Stack(head, false)], []byte(mark))
	if !found {
		return ""
	}
	digits := bytes.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
	return mark + string(after[:max(digits, 0)])
}
