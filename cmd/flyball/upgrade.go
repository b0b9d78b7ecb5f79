// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/upgrade"
)

func runUpgrade(args []string, out, problems io.Writer) error {
	u := upgrade.Upgrade{Own: version()}
	flags := flag.NewFlagSet("flyball upgrade", flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.Usage = func() {
		fmt.Fprint(problems, "usage: flyball upgrade [flags]\n\n")
		flags.PrintDefaults()
	}
	flags.StringVar(&u.Dir, "dir", ".", "`directory` of the module")
	flags.StringVar(&u.To, "to", "", "`version` to require, or latest (default: the version of this program)")
	flags.StringVar(&u.From, "from", "", "`version` that the code was written for, if go.mod requires a later one already")
	flags.BoolVar(&u.DryRun, "dry-run", false, "print the changes as a diff, and write nothing")
	flags.BoolVar(&u.DryRun, "n", false, "the same as --dry-run")
	flags.BoolVar(&u.AllowDirty, "allow-dirty", false, "change files that have uncommitted changes")
	if _, err := parse(flags, args, 0, "the version by --to"); err != nil {
		return err
	}
	return u.Run(out)
}
