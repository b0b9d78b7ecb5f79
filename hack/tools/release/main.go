// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command release tags the modules that users get. It pushes nothing.
//
//	go run . -version v0.2.0 -dir ../../..            commits, and makes the tags
//	go run . -version v0.2.0 -dir ../../.. -notes     prints the release notes alone
//	go run . -version v0.2.0 -proxy DIR            then writes the modules as a file-system proxy
//
//	main     o───o changelog of v0.2.0
//	              \
//	release        o  nested modules require v0.2.0, without replace
//	               └─ v0.2.0, simulate/v0.2.0, bridge/controllerruntime/v0.2.0, …
//
// On main the nested modules replace the root by its directory. A module that is
// downloaded cannot: users of a nested module would build against a version that does
// not exist. The tags point to a commit beside main, in which each nested module requires
// the release, and its go.sum has the hash of what the tag will give.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/flyball-dev/flyball/internal/commandline"
)

func main() {
	commandline.Exit("release", run(os.Args[1:], os.Stdout))
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "", "the version to release, such as v0.2.0")
	dir := flags.String("dir", ".", "a `directory` of the repository")
	date := flags.String("date", time.Now().UTC().Format(time.DateOnly), "the day of the release")
	notes := flags.Bool("notes", false, "print the release notes of the version, from the changelog, and do nothing else")
	check := flags.Bool("check", false, "only check whether the version can be released from this tree")
	proxy := flags.String("proxy", "", "after the release write its modules into this `directory`, as GOPROXY=file://… reads them")
	if err := commandline.Parse(flags, args); err != nil {
		return err
	}
	if *version == "" {
		return errors.New("no version is given; say which, such as -version v0.2.0")
	}
	repo, err := open(*dir)
	if err != nil {
		return err
	}
	if *notes {
		return repo.printNotes(out, *version)
	}
	if *check {
		return repo.ready(*version)
	}
	tags, err := repo.release(*version, *date)
	if err != nil {
		return fmt.Errorf("release %s: %w", *version, err)
	}
	if *proxy != "" {
		if err := repo.writeProxy(*proxy, *version); err != nil {
			return fmt.Errorf("write the proxy: %w", err)
		}
	}
	fmt.Fprintf(out, "tagged %s; nothing is pushed yet:\n  git push --atomic origin main", *version)
	for _, tag := range tags {
		fmt.Fprintf(out, " %s", tag)
	}
	fmt.Fprintln(out)
	return nil
}
