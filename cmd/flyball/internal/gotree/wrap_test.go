// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gotree

import "testing"

func TestWrap_BreaksWhereGofmtWouldLeaveIt(t *testing.T) {
	const before = `package p

// A comment that is longer than the width stays as it is, whatever is in it.
func f(ctx context.Context, one string, two string) (int, error) {
	if one == "a long word" && g(one) || two == "another" {
		return 0, nil
	}
	wait(t, "something", func() bool { return g(two) == one })
	x := T{A: "a long word", B: "another long word", C: U{D: "a word", E: "words"}}
	const text = "a string that is longer than the width, which stays too"
	return g(x), nil // short
}
`
	const want = `package p

// A comment that is longer than the width stays as it is, whatever is in it.
func f(
	ctx context.Context, one string, two string,
) (int, error) {
	if one == "a long word" && g(one) ||
		two == "another" {
		return 0, nil
	}
	wait(t, "something", func() bool {
		return g(two) == one
	})
	x := T{
		A: "a long word",
		B: "another long word",
		C: U{D: "a word", E: "words"},
	}
	const text = "a string that is longer than the width, which stays too"
	return g(x), nil // short
}
`
	got, err := Wrap("p.go", []byte(before), 50)
	if err != nil || string(got) != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
	if again, err := Wrap("p.go", got, 50); err != nil || string(again) != want {
		t.Errorf("%v; wrapping again gives\n%s", err, again)
	}
}
