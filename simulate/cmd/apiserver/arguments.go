// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A program in place of another takes all flags of the other, and uses some.

// usedFlag is a flag that a program uses.
type usedFlag struct{ name, words string }

// arguments are the flags of a command line. A flag that is given again replaces the earlier
// value, unless the flag is a list.
type arguments map[string]string

// readArguments reads --name=value, --name value and --name. help is true if only the list of
// flags is wanted.
func readArguments(args []string) (a arguments, help bool, err error) {
	a = arguments{}
	for i := 0; i < len(args); i++ {
		name, ok := strings.CutPrefix(args[i], "-")
		if !ok {
			return nil, false, fmt.Errorf("read the flags: %q is none; write --name=value", args[i])
		}
		name, value, given := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if name == "help" || name == "h" {
			return nil, true, nil
		}
		if !given && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			value = args[i]
		}
		a[name] = value
	}
	return a, false, nil
}

// unused returns the flags that a program does not use.
func (a arguments) unused(used []usedFlag) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !slices.ContainsFunc(used, func(f usedFlag) bool { return f.name == name }) {
			names = append(names, "--"+name)
		}
	}
	return names
}

// on reports whether a flag without a value, or with true, is given.
func (a arguments) on(name string) bool {
	value, ok := a[name]
	return ok && (value == "" || value == "true")
}

// list returns the parts of a flag with commas.
func (a arguments) list(name string) []string {
	if a[name] == "" {
		return nil
	}
	return strings.Split(a[name], ",")
}

// printUsage lists flags as Kubernetes' programs do; envtest searches the list.
func printUsage(out io.Writer, about string, used []usedFlag) error {
	fmt.Fprintf(out, "%s\n\nAll other flags are accepted and have no effect.\n\nFlags:\n", about)
	for _, f := range used {
		if _, err := fmt.Fprintf(out, "      --%-36s %s\n", f.name+" string", f.words); err != nil {
			return err
		}
	}
	return nil
}
