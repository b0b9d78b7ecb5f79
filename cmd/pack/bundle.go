// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"

	"github.com/flyball-dev/flyball/cmd/pack/internal/base"
	"github.com/flyball-dev/flyball/cmd/pack/internal/bundle"
	"github.com/flyball-dev/flyball/cmd/pack/internal/chart"
	"github.com/flyball-dev/flyball/cmd/pack/internal/outdir"
)

func bundleFlags(fs *flag.FlagSet) func(context.Context, []string, terminal) error {
	var m manifests
	m.bind(fs, "dist/bundle", "the ClusterServiceVersion, such as spec.maintainers and spec.replaces")
	sample := fs.String("sample", "", "YAML `file` with sample objects (default: sample.yaml in the base, if it is there)")
	channel := fs.String("channel", "stable", "`name` of the channel")
	return func(_ context.Context, args []string, t terminal) error {
		dir, b, version, err := m.render(args, t)
		if err != nil {
			return err
		}
		opts := bundle.Options{Name: m.name, Version: version, Channel: *channel, MergeFile: merged(m), Description: chart.Describe(b)}
		if *sample != "" {
			opts.SampleFile = in(m.dir, *sample)
		} else if opts.SampleFile, err = base.SampleFile(dir); err != nil {
			return err
		}
		files, warnings, err := bundle.Files(b, opts)
		if err != nil {
			return err
		}
		for _, w := range warnings {
			t.warn("%s", w)
		}
		return outdir.Replace(in(m.dir, m.out), files)
	}
}
