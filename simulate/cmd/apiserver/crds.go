// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flyball-dev/flyball/internal/manifest"
)

const (
	crdKind       = "CustomResourceDefinition"
	crdAPIVersion = "apiextensions.k8s.io/v1"
)

// definitions are the CRDs of some files, and where each stands.
type definitions struct {
	crds  []runtime.Object
	where []string
}

// readDefinitions reads the CRDs of a file, or of the files in a directory. Other objects are
// ignored. Errors name the file and count its documents from 1.
func readDefinitions(path string) (d definitions, err error) {
	files, err := manifest.Files(path)
	if err != nil {
		return d, fmt.Errorf("read CRDs: %w; name a directory with CRDs in .yaml, .yml or .json files", err)
	}
	for _, name := range files {
		if err := d.addFile(name); err != nil {
			return d, fmt.Errorf("read CRDs: %w", err)
		}
	}
	if len(d.crds) == 0 {
		return d, fmt.Errorf("read CRDs: %s has none; name a directory with CRDs in .yaml, .yml or .json files, without subdirectories", path)
	}
	return d, nil
}

func (d *definitions) addFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		where := fmt.Sprintf("%s, document %d", name, n)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		objects, err := manifest.Parse(bytes.NewReader(document))
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		for _, object := range objects {
			if err := d.add(object, where); err != nil {
				return fmt.Errorf("%s: %w", where, err)
			}
		}
	}
}

func (d *definitions) add(object *unstructured.Unstructured, where string) error {
	if object.GetKind() != crdKind {
		return nil
	}
	if object.GetAPIVersion() != crdAPIVersion {
		return fmt.Errorf("the CRD %q has the version %s; write it as %s", object.GetName(), object.GetAPIVersion(), crdAPIVersion)
	}
	if object.GetName() == "" {
		return errors.New("a CRD has no metadata.name; write <plural>.<group>")
	}
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	d.crds, d.where = append(d.crds, object), append(d.where, where)
	return nil
}
