// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
)

// user has no rights on any machine. The kubelet recognizes a user other than root only by its
// number.
const user = "65532:65532"

// imageFile is one in an image. It belongs to root, and anyone may read it.
type imageFile struct {
	Name       string // such as /operator
	Text       []byte
	Executable bool
}

// imageContent is what makes an image for one platform.
type imageContent struct {
	Platform   v1.Platform
	Files      []imageFile
	Entrypoint []string
	Labels     map[string]string
	SBOM       []byte // an SPDX document; empty: none
}

// ociImage has one manifest for each platform, and the SBOMs that refer to them. It is made without
// a base and without a container runtime.
type ociImage struct {
	index     v1.ImageIndex
	referrers []v1.Image
}

// newImage returns the image of contents, in their order. The annotations are also those of each
// manifest. The same arguments give the same digest.
func newImage(contents []imageContent, created time.Time, annotations map[string]string) (*ociImage, error) {
	out := &ociImage{index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	for _, c := range contents {
		one, err := c.image(created, annotations)
		if err != nil {
			return nil, err
		}
		descriptor, err := partial.Descriptor(one)
		if err != nil {
			return nil, err
		}
		descriptor.Platform = &c.Platform
		out.index = mutate.AppendManifests(out.index, mutate.IndexAddendum{Add: one, Descriptor: *descriptor})
		if len(c.SBOM) > 0 {
			referrer, err := refer(one, c.SBOM, created)
			if err != nil {
				return nil, err
			}
			out.referrers = append(out.referrers, referrer)
		}
	}
	out.index = mutate.Annotations(out.index, annotations).(v1.ImageIndex)
	return out, nil
}

// Digest of the image for all platforms.
func (i *ociImage) Digest() (v1.Hash, error) { return i.index.Digest() }

func (c imageContent) image(created time.Time, annotations map[string]string) (v1.Image, error) {
	layer, err := layerOf(c.Files, created)
	if err != nil {
		return nil, err
	}
	one := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	one, err = mutate.Append(one, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "flyball pack"},
	})
	if err != nil {
		return nil, err
	}
	config, err := one.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = c.Platform.OS, c.Platform.Architecture, c.Platform.Variant
	config.Created = v1.Time{Time: created}
	config.Config = v1.Config{Entrypoint: c.Entrypoint, Labels: c.Labels}
	if len(c.Entrypoint) > 0 {
		config.Config.User = user
	}
	if one, err = mutate.ConfigFile(one, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(one, annotations).(v1.Image), nil
}

// layerOf returns a layer with files and their directories. It compresses with a module of
// a fixed version: that of the standard library gives other bytes with another Go.
func layerOf(files []imageFile, at time.Time) (v1.Layer, error) {
	var compressed bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := writeTar(zipped, files, at); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(compressed.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// writeTar writes files, and before each its directories, with nothing of this machine.
func writeTar(to io.Writer, files []imageFile, at time.Time) error {
	out, seen := tar.NewWriter(to), map[string]bool{}
	add := func(header tar.Header, text []byte) error {
		header.ModTime, header.Format = at, tar.FormatPAX
		header.Size = int64(len(text))
		if err := out.WriteHeader(&header); err != nil {
			return err
		}
		_, err := out.Write(text)
		return err
	}
	for _, file := range files {
		name := strings.TrimPrefix(path.Clean("/"+file.Name), "/")
		var dirs []string
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
		for _, dir := range slices.Backward(dirs) {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			if err := add(tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}, nil); err != nil {
				return err
			}
		}
		mode := int64(0o444)
		if file.Executable {
			mode = 0o555
		}
		if err := add(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, file.Text); err != nil {
			return err
		}
	}
	return out.Close()
}

// Layout returns the files of an OCI image layout. Its index names the image by the tag, as
// skopeo finds it, and by the whole name, as containerd imports it; without a name the tag
// is latest.
func (i *ociImage) Layout(tag name.Tag) (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "flyball-pack-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return nil, err
	}
	names := map[string]string{"org.opencontainers.image.ref.name": cmp.Or(tag.TagStr(), "latest")}
	if tag.RepositoryStr() != "" {
		names["io.containerd.image.name"] = tag.Name()
	}
	if err := to.AppendIndex(i.index, layout.WithAnnotations(names)); err != nil {
		return nil, err
	}
	for _, referrer := range i.referrers {
		if err := to.AppendImage(referrer); err != nil {
			return nil, err
		}
	}
	files := map[string][]byte{}
	err = filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		files[filepath.ToSlash(name)] = text
		return err
	})
	return files, err
}

// WithoutSBOMs returns the same image alone: programs that load archives expect one.
func (i *ociImage) WithoutSBOMs() *ociImage { return &ociImage{index: i.index} }

// writeArchive writes a layout as a tar archive, as podman and kind load it.
func writeArchive(to io.Writer, files map[string][]byte, at time.Time) error {
	var sorted []imageFile
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sorted = append(sorted, imageFile{Name: name, Text: files[name]})
	}
	if err := writeTar(to, sorted, at); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

// isArchive reports whether text begins as writeArchive writes.
func isArchive(text []byte) bool {
	header, err := tar.NewReader(bytes.NewReader(text)).Next()
	return err == nil && header.Name == "blobs/"
}
