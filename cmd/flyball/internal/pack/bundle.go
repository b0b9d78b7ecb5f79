// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/pack/internal/manifests"
)

func bundleFlags(fs *flag.FlagSet) func(context.Context, []string, terminal) error {
	var m manifestFlags
	m.bind(fs, "dist/bundle", "the ClusterServiceVersion, such as spec.maintainers and spec.replaces")
	sample := fs.String("sample", "", "YAML `file` with sample objects (default: sample.yaml in the base, if it is there)")
	channel := fs.String("channel", "stable", "`name` of the channel")
	push := fs.String("push", "", "push the bundle's image under this `name`, and print it with the digest (default: none)")
	return func(ctx context.Context, args []string, t terminal) error {
		var tag name.Tag
		if *push != "" {
			var err error
			if tag, err = parseImageName(*push); err != nil {
				return misuse{err}
			}
		}
		dir, b, version, err := m.render(args, t)
		if err != nil {
			return err
		}
		opts := manifests.BundleOptions{Name: m.name, Version: version, Channel: *channel, MergeFile: merged(m), Description: manifests.Describe(b)}
		if *sample != "" {
			opts.SampleFile = in(m.dir, *sample)
		} else if opts.SampleFile, err = manifests.SampleFile(dir); err != nil {
			return err
		}
		made, err := manifests.NewBundle(b, opts)
		if err != nil {
			return err
		}
		for _, w := range made.Warnings {
			t.warn("%s", w)
		}
		if err := replaceDir(in(m.dir, m.out), made.Files); err != nil || *push == "" {
			return err
		}
		said, err := pushBundle(ctx, made, tag)
		if err != nil {
			return err
		}
		fmt.Fprintln(t.out, said)
		return nil
	}
}

// pushBundle pushes what bundle.Dockerfile describes. A node of any processor can pull it.
func pushBundle(ctx context.Context, made *manifests.Bundle, tag name.Tag) (string, error) {
	var files []imageFile
	for _, file := range slices.Sorted(maps.Keys(made.Files)) {
		if inImage, found := strings.CutPrefix(file, "bundle/"); found {
			files = append(files, imageFile{Name: "/" + inImage, Text: made.Files[file]})
		}
	}
	var contents []imageContent
	for _, processor := range []string{"amd64", "arm64", "ppc64le", "s390x"} {
		contents = append(contents, imageContent{Platform: v1.Platform{OS: "linux", Architecture: processor}, Files: files, Labels: made.Labels()})
	}
	pushed, err := newImage(contents, time.Unix(0, 0), nil)
	if err != nil {
		return "", err
	}
	return pushed.Push(ctx, tag)
}
