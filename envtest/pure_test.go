// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/internal/localserver"
)

func TestMergeArgs(t *testing.T) {
	own := map[string][]string{"profiling": {"false"}, "secure-port": {"1"}}
	for _, tc := range []struct {
		name string
		set  map[string][]string
		want []string
	}{
		{"own alone", nil, []string{"--profiling=false", "--secure-port=1"}},
		{"another flag", map[string][]string{"v": {"4"}}, []string{"--profiling=false", "--secure-port=1", "--v=4"}},
		{"replaced", map[string][]string{"profiling": {"true"}}, []string{"--profiling=true", "--secure-port=1"}},
		{"taken away", map[string][]string{"profiling": nil}, []string{"--secure-port=1"}},
		{"several values", map[string][]string{"a": {"y", "x"}}, []string{"--a=x", "--a=y", "--profiling=false", "--secure-port=1"}},
	} {
		if got := mergeArgs(own, tc.set); !slices.Equal(got, tc.want) {
			t.Errorf("%s: mergeArgs = %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestOnFreePort_TriesAnotherOnlyWhenTaken(t *testing.T) {
	other := errors.New("another fault")
	for _, tc := range []struct {
		name    string
		answers []error
		want    error
	}{
		{"free", []error{nil}, nil},
		{"taken twice", []error{errPortTaken, fmt.Errorf("it ended: %w", errPortTaken), nil}, nil},
		{"another fault", []error{other}, other},
		{"always taken", []error{errPortTaken, errPortTaken, errPortTaken, errPortTaken, errPortTaken}, errPortTaken},
	} {
		tries := 0
		err := onFreePort(func(port int) error {
			if port < localserver.FirstPort || port >= localserver.LastPort {
				t.Errorf("%s: port %d, want one from %d to %d", tc.name, port, localserver.FirstPort, localserver.LastPort)
			}
			tries++
			return tc.answers[tries-1]
		})
		if !errors.Is(err, tc.want) || tries != len(tc.answers) {
			t.Errorf("%s: %v after %d tries, want %v after %d", tc.name, err, tries, tc.want, len(tc.answers))
		}
	}
}

func TestReason(t *testing.T) {
	for answer, want := range map[string]string{
		`{"kind":"Status","message":"no"}`: "no",
		`{"error":"gone","code":11}`:       `{"error":"gone","code":11}`,
		" plain\n":                         "plain",
		strings.Repeat("x", 5000):          strings.Repeat("x", 2000),
	} {
		if got := reason([]byte(answer)); got != want {
			t.Errorf("reason(%.40q) = %.40q, want %.40q", answer, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"a\nb\nc\n":            "a\nb\nc",
		"a\nb\nc\nd":           "a\n…\nc\nd",
		"\na\nb\nc\nd\ne\nf\n": "a\n…\ne\nf",
	} {
		if got := shorten(text, 1, 2); got != want {
			t.Errorf("shorten(%q) = %q, want %q", text, got, want)
		}
	}
}
