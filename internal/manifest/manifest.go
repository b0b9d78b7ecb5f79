// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads objects from YAML or JSON files, and finds the
// addresses of webhooks in them.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Parse reads the objects of all documents of r, including those in Lists.
func Parse(r io.Reader) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(r, 4096)
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil && len(document) == 0 {
			continue // only comments between two separators
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = utiljson.Unmarshal(document, &object.Object)
		}
		if err != nil {
			return nil, err
		}
		if !object.IsList() {
			all = append(all, object)
			continue
		}
		list, err := object.ToList()
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
}

// Files returns path itself or, for a directory, the .yaml, .yml and .json
// files directly in it.
func Files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	var files []string
	for _, entry := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) && !entry.IsDir() {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, err
}

// Read reads the objects for which wanted returns true from files and
// directories. A path without any is an error, which calls them what.
func Read(paths []string, what string, wanted func(*unstructured.Unstructured) bool) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, path := range paths {
		files, err := Files(path)
		if err != nil {
			return nil, err
		}
		before := len(all)
		for _, name := range files {
			objects, err := readFile(name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !wanted(o) })...)
		}
		if len(all) == before {
			return nil, fmt.Errorf("%q has no %s", path, what)
		}
	}
	return all, nil
}

func readFile(name string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	return Parse(file)
}
