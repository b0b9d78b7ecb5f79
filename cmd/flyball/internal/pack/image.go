// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// imageCommand is what the flags of pack image say.
type imageCommand struct {
	dir, platforms, out, sboms, name, tags, program, source, authorities string
	push, dirty                                                          bool
}

func imageFlags(fs *flag.FlagSet) func(context.Context, []string, terminal) error {
	var c imageCommand
	fs.StringVar(&c.dir, "C", "", "`directory` to run in (default: the current one)")
	fs.StringVar(&c.platforms, "platform", "linux/amd64,linux/arm64", "comma-separated `platforms`")
	fs.StringVar(&c.out, "o", "", "`directory` for an OCI image layout, or a file that ends in .tar for an archive of one")
	fs.StringVar(&c.sboms, "sbom", "", "`directory` for the SBOMs, beside those that refer to the image (default: none)")
	fs.StringVar(&c.name, "image", "", "`name` with a tag, such as registry.example.com/operator:v1")
	fs.BoolVar(&c.push, "push", false, "push to the registry in -image, and print the name with the digest")
	fs.BoolVar(&c.dirty, "dirty", false, "build files that differ from the commit, too; the revision then ends in -dirty")
	fs.StringVar(&c.tags, "tags", "production", "comma-separated build `tags`")
	fs.StringVar(&c.program, "program", "operator", "`name` of the program, which is the entrypoint")
	fs.StringVar(&c.source, "source", "", "`URL` of the source code (default: from the module's path)")
	fs.StringVar(&c.authorities, "ca-certificates", "", "`file` with certificates of authorities, for programs that call servers outside the cluster (default: none)")
	return c.run
}

// misuse returns an error if the flags do not say where to put which image.
func (c *imageCommand) misuse() error {
	switch {
	case c.push && c.name == "":
		return errors.New("-push needs to know where to: name the image with -image")
	case !c.push && c.out == "":
		return errors.New("there is no place for the image: give -o with a directory, or -image and -push")
	case c.program == "" || strings.ContainsAny(c.program, `/\ `):
		return fmt.Errorf("-program %q is no name of a file; write operator", c.program)
	}
	return nil
}

func (c *imageCommand) run(ctx context.Context, args []string, t terminal) error {
	pattern, err := argument(args, ".")
	if err != nil {
		return err
	}
	platforms, err := parsePlatforms(c.platforms)
	if err != nil {
		return misuse{err}
	}
	var tag name.Tag
	if c.name != "" {
		if tag, err = parseImageName(c.name); err != nil {
			return misuse{err}
		}
	}
	if err := c.misuse(); err != nil {
		return misuse{err}
	}
	for _, out := range []string{c.out, c.sboms} {
		if err := writable(in(c.dir, out)); err != nil && out != "" {
			return err
		}
	}
	p, err := openProgram(ctx, c.dir, pattern, c.tags)
	if err != nil {
		return err
	}
	revision, err := c.revision(ctx, p, platforms, t)
	if err != nil {
		return err
	}
	made, sboms, err := c.build(ctx, p, platforms, revision)
	if err != nil {
		return err
	}
	return c.deliver(ctx, made, sboms, tag, p.Time, t)
}

// revision returns the commit, marked if the program is of other files.
func (c *imageCommand) revision(ctx context.Context, p *goProgram, platforms []goPlatform, t terminal) (string, error) {
	var others []string
	if c.authorities != "" {
		others = append(others, in(c.dir, c.authorities))
	}
	changed, err := p.Changed(ctx, platforms, others...)
	if err != nil || len(changed) == 0 {
		return p.Commit, err
	}
	const most = 10
	if more := len(changed) - most; more > 0 {
		changed = append(changed[:most], fmt.Sprintf("and %d more", more))
	}
	if !c.dirty {
		return "", fmt.Errorf("the program is not that of commit %.12s; commit, or give -dirty for an image whose revision says so:\n  %s", p.Commit, strings.Join(changed, "\n  "))
	}
	t.warn("the image is not that of commit %.12s:\n  %s", p.Commit, strings.Join(changed, "\n  "))
	return p.Commit + "-dirty", nil
}

// build returns the image, and the SBOMs by the names of their files.
func (c *imageCommand) build(ctx context.Context, p *goProgram, platforms []goPlatform, revision string) (*ociImage, map[string][]byte, error) {
	work, err := os.MkdirTemp("", "flyball-pack-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	annotations := map[string]string{
		"org.opencontainers.image.created":  p.Time.Format(time.RFC3339),
		"org.opencontainers.image.revision": revision,
		"org.opencontainers.image.source":   cmp.Or(c.source, sourceOf(p.Module)),
		"org.opencontainers.image.title":    c.program,
	}
	var contents []imageContent
	sboms := map[string][]byte{}
	for _, platform := range platforms {
		file := filepath.Join(work, platform.Architecture+platform.Variant, c.program)
		if err := p.Build(ctx, platform, file); err != nil {
			return nil, nil, err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		sbom, err := sbomOf(file, revision, p.Time)
		if err != nil {
			return nil, nil, err
		}
		sboms[c.program+"-"+strings.ReplaceAll(platform.String(), "/", "-")+".spdx.json"] = sbom
		files := []imageFile{{Name: "/" + c.program, Text: text, Executable: true}}
		if c.authorities != "" {
			text, err := os.ReadFile(in(c.dir, c.authorities))
			if err != nil {
				return nil, nil, fmt.Errorf("read -ca-certificates: %w", err)
			}
			files = append(files, imageFile{Name: "/etc/ssl/certs/ca-certificates.crt", Text: text})
		}
		contents = append(contents, imageContent{
			Platform: v1.Platform{OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant},
			Files:    files, Entrypoint: []string{"/" + c.program}, Labels: annotations, SBOM: sbom,
		})
	}
	made, err := newImage(contents, p.Time, annotations)
	return made, sboms, err
}

// deliver writes and pushes the image, and prints its name or digest.
func (c *imageCommand) deliver(ctx context.Context, made *ociImage, sboms map[string][]byte, tag name.Tag, at time.Time, t terminal) error {
	digest, err := made.Digest()
	if err != nil {
		return err
	}
	said := digest.String()
	if c.sboms != "" {
		if err := replaceDir(in(c.dir, c.sboms), sboms); err != nil {
			return err
		}
	}
	if c.out != "" {
		content := made
		if strings.HasSuffix(c.out, ".tar") {
			content = made.WithoutSBOMs()
		}
		files, err := content.Layout(tag)
		if err != nil {
			return err
		}
		if err := c.write(files, at); err != nil {
			return err
		}
	}
	if c.name != "" {
		said = tag.Context().Digest(digest.String()).String()
	}
	if c.push {
		if said, err = made.Push(ctx, tag); err != nil {
			return err
		}
	}
	fmt.Fprintln(t.out, said)
	return nil
}

func (c *imageCommand) write(files map[string][]byte, at time.Time) error {
	out := in(c.dir, c.out)
	if !strings.HasSuffix(out, ".tar") {
		return replaceDir(out, files)
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(writeArchive(file, files, at), file.Close())
}

// writable returns an error if there are files that this command has not written.
func writable(out string) error {
	if !strings.HasSuffix(out, ".tar") {
		return checkDir(out)
	}
	have, err := os.ReadFile(out)
	if err == nil && !isArchive(have) {
		return fmt.Errorf("write %s: it is no archive of an image; name another file with -o, or remove it", out)
	}
	return nil
}

// sourceOf guesses where the source code of a module is.
func sourceOf(module string) string {
	parts := strings.Split(module, "/")
	if host := parts[0]; len(parts) > 3 && (host == "github.com" || host == "gitlab.com" || host == "bitbucket.org" || host == "codeberg.org") {
		parts = parts[:3]
	}
	return "https://" + strings.Join(parts, "/")
}

func sbomFlags(fs *flag.FlagSet) func(context.Context, []string, terminal) error {
	out := fs.String("o", "", "`file` to write (default: stdout)")
	return func(_ context.Context, args []string, t terminal) error {
		if len(args) != 1 {
			return misuse{fmt.Errorf("give one program, got %d arguments", len(args))}
		}
		text, err := sbomOf(args[0], "", time.Time{})
		if err != nil {
			return err
		}
		if *out != "" {
			return os.WriteFile(*out, text, 0o644)
		}
		_, err = t.out.Write(text)
		return err
	}
}
