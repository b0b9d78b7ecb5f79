// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// parseImageName reads the name of an image with a tag, such as registry.example.com/operator:v1.
func parseImageName(text string) (name.Tag, error) {
	tag, err := name.NewTag(text, name.WithDefaultTag("latest"))
	if err != nil {
		return tag, fmt.Errorf("%q is no name of an image: %w; write registry.example.com/operator:v1", text, err)
	}
	return tag, nil
}

// Push writes the image and its SBOMs to a registry, with the credentials that docker login
// or podman login have stored. It returns the name with the digest.
func (i *ociImage) Push(ctx context.Context, to name.Tag) (string, error) {
	digest, err := i.Digest()
	if err != nil {
		return "", err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("flyball-pack")}
	// The tag is moved last.
	byDigest := to.Context().Digest(digest.String())
	if err := remote.WriteIndex(byDigest, i.index, options...); err != nil {
		return "", fmt.Errorf("push %s: %w; docker login or podman login stores credentials for %s", byDigest, err, to.Context().RegistryStr())
	}
	for _, referrer := range i.referrers {
		own, err := referrer.Digest()
		if err != nil {
			return "", err
		}
		if err := remote.Write(to.Context().Digest(own.String()), referrer, options...); err != nil {
			return "", fmt.Errorf("push the SBOM of %s: %w", byDigest, err)
		}
	}
	if err := remote.WriteIndex(to, i.index, options...); err != nil {
		return "", fmt.Errorf("push %s: %w", to, err)
	}
	return byDigest.String(), nil
}
