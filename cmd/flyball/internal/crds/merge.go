// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flyball-dev/flyball/internal/jsontree"
)

// mergeFile merges the documents in a file, as JSON merge patches, into the definitions of the
// same name.
func mergeFile(file string, definitions []definition) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLToJSONDecoder(bytes.NewReader(text))
	for {
		var part map[string]any
		if err := decoder.Decode(&part); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if part == nil {
			continue // only comments
		}
		metadata, _ := part["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		at := slices.IndexFunc(definitions, func(d definition) bool { return d.crd.Name == name })
		if at < 0 {
			return fmt.Errorf("no kind makes the definition %q, which metadata.name names", name)
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&definitions[at].crd)
		if err != nil {
			return err
		}
		object = jsontree.Merge(object, part)
		definitions[at].crd = apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &definitions[at].crd, true); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}
