// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command sbom writes the software bill of materials of a Go program as SPDX 2.3 in JSON: the
// modules that the go command has recorded in it, with their versions and checksums.
//
//	go run ./hack/sbom PROGRAM              to standard output
//	go run ./hack/sbom -o FILE PROGRAM      into a file
//
// The output depends on the program alone: its time is that of the commit from which it was
// built, or $SOURCE_DATE_EPOCH.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// run is main with explicit arguments and outputs.
func run(args []string, out, messages io.Writer) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	flags.SetOutput(messages)
	into := flags.String("o", "", "write into this `file` (default: standard output)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("give one program, got %d arguments", flags.NArg())
	}
	text, err := read(flags.Arg(0))
	if err != nil {
		return err
	}
	if *into != "" {
		return os.WriteFile(*into, text, 0o644)
	}
	_, err = out.Write(text)
	return err
}

// read returns the document for the program at path.
func read(path string) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the build information of %s: %w; it must be a Go program", path, err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	at, err := created(info)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(describe(info, filepath.Base(path), file, at), "", "  ")
	return append(text, '\n'), err
}

// created returns the time of the document.
func created(info *buildinfo.BuildInfo) (time.Time, error) {
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		return time.Unix(seconds, 0), nil
	}
	if at, err := time.Parse(time.RFC3339, setting(info, "vcs.time")); err == nil {
		return at, nil
	}
	return time.Unix(0, 0), nil // SPDX requires a time, and none is known
}
