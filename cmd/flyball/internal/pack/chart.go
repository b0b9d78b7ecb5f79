// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"regexp"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/pack/internal/manifests"
)

// manifestFlags is what the flags of pack chart and pack bundle have in common.
type manifestFlags struct {
	dir, out, image, version, name, deployment, merge string
}

func (m *manifestFlags) bind(fs *flag.FlagSet, out, merged string) {
	fs.StringVar(&m.dir, "C", "", "`directory` to run in (default: the current one)")
	fs.StringVar(&m.out, "o", out, "`directory` to write")
	fs.StringVar(&m.image, "image", "", "`name` of the operator's image (default: that of the base)")
	fs.StringVar(&m.version, "version", "", "semantic `version`, such as 1.2.3 (default: the tag of the image)")
	fs.StringVar(&m.name, "name", "", "`name` of what is written (default: that of the Deployment)")
	fs.StringVar(&m.deployment, "deployment", "", "`name` of the operator's Deployment, if the base has several")
	fs.StringVar(&m.merge, "merge", "", "YAML `file` with fields of "+merged+" (default: none)")
}

// semantic matches a semantic version.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// render returns the base and the version.
func (m *manifestFlags) render(args []string, t terminal) (dir string, b *manifests.Rendered, version string, err error) {
	if dir, err = argument(args, "config"); err != nil {
		return "", nil, "", err
	}
	if m.out == "" {
		return "", nil, "", misuse{fmt.Errorf("there is no place to write: give -o with a directory")}
	}
	if err := checkDir(in(m.dir, m.out)); err != nil {
		return "", nil, "", err
	}
	dir = in(m.dir, dir)
	if b, err = manifests.Render(dir, m.deployment); err != nil {
		return "", nil, "", err
	}
	if m.image != "" {
		b.SetImage(m.image)
	}
	tag := manifests.ParseImage(manifests.String(b.Container, "image")).Tag
	version = strings.TrimPrefix(cmp.Or(m.version, tag), "v")
	if !semantic.MatchString(version) {
		what := fmt.Sprintf("-version %q", m.version)
		if m.version == "" {
			what = fmt.Sprintf("the tag %q of the image", tag)
		}
		return "", nil, "", misuse{fmt.Errorf("%s is no semantic version; give -version 1.2.3", what)}
	}
	if named := b.NamedNamespace(); named != "" {
		t.warn("%s of %s has the namespace of the base, and the operator is installed in others, too; leave it out, where the Pod's own is meant", named, b.Deployment)
	}
	return dir, b, version, nil
}

func chartFlags(fs *flag.FlagSet) func(context.Context, []string, terminal) error {
	var m manifestFlags
	m.bind(fs, "dist/chart", "Chart.yaml")
	return func(_ context.Context, args []string, t terminal) error {
		_, b, version, err := m.render(args, t)
		if err != nil {
			return err
		}
		files, err := manifests.ChartFiles(b, manifests.ChartOptions{Name: m.name, Version: version, MergeFile: merged(m), Description: manifests.Describe(b)})
		if err != nil {
			return err
		}
		return replaceDir(in(m.dir, m.out), files)
	}
}

func merged(m manifestFlags) string {
	if m.merge == "" {
		return ""
	}
	return in(m.dir, m.merge)
}
