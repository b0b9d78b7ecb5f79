// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/json"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	spdx       = "application/spdx+json"
	emptyType  = "application/vnd.oci.empty.v1+json"
	emptyValue = "{}"
)

// artifact is a manifest without an image's configuration, as the OCI image specification
// 1.1 describes it.
type artifact struct {
	manifest []byte
	blobs    map[v1.Hash]v1.Layer
}

// refer returns an artifact with an SBOM whose subject is an image.
func refer(to v1.Image, sbom []byte, created time.Time) (v1.Image, error) {
	subject, err := partial.Descriptor(to)
	if err != nil {
		return nil, err
	}
	a := &artifact{blobs: map[v1.Hash]v1.Layer{}}
	add := func(text []byte, mediaType types.MediaType) (v1.Descriptor, error) {
		layer := static.NewLayer(text, mediaType)
		hash, err := layer.Digest()
		a.blobs[hash] = layer
		return v1.Descriptor{MediaType: mediaType, Size: int64(len(text)), Digest: hash}, err
	}
	config, err := add([]byte(emptyValue), emptyType)
	if err != nil {
		return nil, err
	}
	layer, err := add(sbom, spdx)
	if err != nil {
		return nil, err
	}
	a.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: spdx, Config: config, Layers: []v1.Descriptor{layer},
		Subject:     &v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest},
		Annotations: map[string]string{"org.opencontainers.image.created": created.UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(a)
}

func (a *artifact) RawConfigFile() ([]byte, error)      { return []byte(emptyValue), nil }
func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a *artifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a *artifact) LayerByDigest(hash v1.Hash) (partial.CompressedLayer, error) {
	if layer, ok := a.blobs[hash]; ok {
		return layer, nil
	}
	return nil, fmt.Errorf("the artifact has no blob %s", hash)
}
