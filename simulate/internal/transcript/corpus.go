// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// Corpus returns a case for each manifest of fsys, which creates it: those of *.yaml
// unchanged (area corpus), and as edited by each line of refused/*.txt (area refused).
// kinds.txt has the path at which objects of a kind are created.
//
// Cluster-scoped objects are created with dryRun, because a webhook or a PriorityClass
// changes the answers to other cases.
func Corpus(fsys fs.FS) ([]Case, error) {
	kinds, err := readKinds(fsys)
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	var cases []Case
	manifests := map[string]manifest{}
	for _, file := range files {
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, err
		}
		area := strings.TrimSuffix(file, ".yaml")
		for i, document := range strings.Split("\n"+string(text), "\n---\n") {
			m, err := readManifest(document)
			if err != nil {
				return nil, fmt.Errorf("%s: document %d: %w", file, i+1, err)
			}
			if m.object == nil {
				continue
			}
			m.name = area + "/" + m.name
			if _, taken := manifests[m.name]; taken {
				m.name += fmt.Sprintf("-%v", m.object["kind"])
			}
			manifests[m.name] = m
			c, err := m.create(kinds, "corpus/"+m.name)
			if err != nil {
				return nil, fmt.Errorf("%s: document %d: %w", file, i+1, err)
			}
			cases = append(cases, c)
		}
	}
	refused, err := refusedCases(fsys, kinds, manifests)
	if err != nil {
		return nil, err
	}
	return begin(append(cases, refused...), nil)
}

// refusedCases returns the cases of refused/*.txt. Each line names a manifest of the file
// with the same stem, and the edits.
func refusedCases(fsys fs.FS, kinds map[string]string, manifests map[string]manifest) (cases []Case, err error) {
	files, err := fs.Glob(fsys, "refused/*.txt")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, err
		}
		area := strings.TrimSuffix(path.Base(file), ".txt")
		for i, line := range strings.Split(string(text), "\n") {
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			name, edits, _ := strings.Cut(line, " ")
			m, ok := manifests[area+"/"+name]
			if !ok {
				return nil, fmt.Errorf("%s: line %d: there is no manifest %s/%s", file, i+1, area, name)
			}
			if m.object, err = edited(m.object, edits); err != nil {
				return nil, fmt.Errorf("%s: line %d: %w", file, i+1, err)
			}
			c, err := m.create(kinds, "refused/"+area+"/"+line)
			if err != nil {
				return nil, fmt.Errorf("%s: line %d: %w", file, i+1, err)
			}
			cases = append(cases, c)
		}
	}
	return cases, nil
}

// manifest is one document of the corpus.
type manifest struct {
	name   string
	before []Step // played before the manifest is created
	object map[string]any
}

// readManifest parses a document. Its comments that begin with "#:" are steps.
func readManifest(document string) (m manifest, err error) {
	if err := yaml.Unmarshal([]byte(document), &m.object); err != nil || m.object == nil {
		return m, err
	}
	metadata, _ := m.object["metadata"].(map[string]any)
	if m.name, _ = metadata["name"].(string); m.name == "" {
		if m.name, _ = metadata["generateName"].(string); m.name == "" {
			return m, fmt.Errorf("no name")
		}
	}
	steps := "-- before --\n"
	for line := range strings.Lines(document) {
		if step, ok := strings.CutPrefix(line, "#:"); ok {
			steps += strings.TrimSpace(step) + "\n"
		}
	}
	before, err := Parse(m.name, steps)
	if err != nil {
		return m, err
	}
	for _, step := range before[0].Steps {
		step.Options = append([]Option{{"silent", "true"}}, step.Options...)
		m.before = append(m.before, step)
	}
	return m, nil
}

// readKinds parses kinds.txt: an apiVersion, a kind, its resource and its scope per line.
// It returns the path of each "apiVersion kind".
func readKinds(fsys fs.FS) (map[string]string, error) {
	text, err := fs.ReadFile(fsys, "kinds.txt")
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(words) != 4 {
			return nil, fmt.Errorf("kinds.txt: %q is not an apiVersion, a kind, a resource and a scope", line)
		}
		root := "/apis/" + words[0]
		if words[0] == "v1" {
			root = "/api/v1"
		}
		where := root + "/" + words[2] + "?fieldValidation=Strict&dryRun=All"
		if words[3] == "namespaced" {
			where = root + "/namespaces/$ns/" + words[2] + "?fieldValidation=Strict"
		}
		paths[words[0]+" "+words[1]] = where
	}
	return paths, nil
}

// create returns the case that creates m.
func (m manifest) create(kinds map[string]string, name string) (Case, error) {
	where, ok := kinds[fmt.Sprintf("%v %v", m.object["apiVersion"], m.object["kind"])]
	if !ok {
		return Case{}, fmt.Errorf("%v %v is not in kinds.txt", m.object["apiVersion"], m.object["kind"])
	}
	metadata, _ := m.object["metadata"].(map[string]any)
	if namespace, ok := metadata["namespace"].(string); ok {
		where = strings.Replace(where, "$ns", namespace, 1)
	}
	body, err := json.Marshal(m.object)
	if err != nil {
		return Case{}, err
	}
	step := Step{Verb: "POST", Rest: where, Body: strings.ReplaceAll(string(body), "$", "$$"), Options: []Option{{"changes", "true"}}}
	return Case{Name: name, Steps: append(m.before[:len(m.before):len(m.before)], step)}, nil
}
