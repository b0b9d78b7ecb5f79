// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"strconv"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Natively decoded values, in the form that servers write. They return bad for
// any other form, which the type's own method reads.

const (
	lenTime      = len(`"2006-01-02T15:04:05Z"`)
	lenMicroTime = len(`"2006-01-02T15:04:05.000000Z"`)
)

func readTime(p unsafe.Pointer, b []byte, i int) int {
	if len(b)-i < lenTime || b[i] != '"' || b[i+lenTime-2] != 'Z' || b[i+lenTime-1] != '"' {
		return bad
	}
	t, ok := readSeconds(b[i+1:], 0)
	if !ok {
		return bad
	}
	(*metav1.Time)(p).Time = t
	return i + lenTime
}

func readMicroTime(p unsafe.Pointer, b []byte, i int) int {
	if len(b)-i < lenMicroTime || b[i] != '"' || b[i+lenTime-2] != '.' || b[i+lenMicroTime-2] != 'Z' || b[i+lenMicroTime-1] != '"' {
		return bad
	}
	micros, ok := decimal(b[i+lenTime-1 : i+lenMicroTime-2])
	if !ok {
		return bad
	}
	t, ok := readSeconds(b[i+1:], micros)
	if !ok {
		return bad
	}
	(*metav1.MicroTime)(p).Time = t
	return i + lenMicroTime
}

// readSeconds returns the time in UTC at the start of b, as local time.
func readSeconds(b []byte, micros int) (time.Time, bool) {
	if b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return time.Time{}, false
	}
	year, ok1 := decimal(b[0:4])
	month, ok2 := decimal(b[5:7])
	day, ok3 := decimal(b[8:10])
	hour, ok4 := decimal(b[11:13])
	minute, ok5 := decimal(b[14:16])
	second, ok6 := decimal(b[17:19])
	// The end of a month is left to the method.
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, micros*1000, time.UTC)
	if day > 28 && t.Day() != day {
		return time.Time{}, false
	}
	return t.Local(), true
}

func decimal(b []byte) (n int, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

func (r *run) intOrString(n *node, p unsafe.Pointer, i int) int {
	to := (*intstr.IntOrString)(p)
	if r.b[i] == '"' {
		to.Type = intstr.String
		return r.string(n, &to.StrVal, i)
	}
	v, end := readInt(r.b, i)
	if end < 0 || v != int64(int32(v)) {
		return bad
	}
	to.IntVal = int32(v)
	return end
}

// readNumber returns the number at i as a value of an interface: an int64, or
// if it has no such value a float64.
func readNumber(b []byte, i int) (v any, end int) {
	end, integer := number(b, i)
	if end < 0 {
		return nil, bad
	}
	if integer {
		if v, ok := readInt(b, i); ok > 0 {
			return v, end
		}
	}
	f, err := strconv.ParseFloat(string(b[i:end]), 64)
	if err != nil {
		return nil, bad
	}
	return f, end
}
