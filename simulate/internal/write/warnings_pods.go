// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"
	"strings"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// podSpecs are the paths at which objects of built-in kinds hold the spec of their Pods.
var podSpecs = map[string]string{
	"pods": "spec", "podtemplates": "template.spec", "replicationcontrollers": "spec.template.spec",
	"deployments.apps": "spec.template.spec", "replicasets.apps": "spec.template.spec",
	"statefulsets.apps": "spec.template.spec", "daemonsets.apps": "spec.template.spec",
	"jobs.batch": "spec.template.spec", "cronjobs.batch": "spec.jobTemplate.spec.template.spec",
}

// ofPods warns of environment variables that hide earlier ones of the same name.
func ofPods(k *kinds.Kind, obj *object.Object) (texts []string) {
	path := podSpecs[k.GroupResource().String()]
	if path == "" {
		return nil
	}
	spec := obj.Fields
	for name := range strings.SplitSeq(path, ".") {
		spec, _ = spec[name].(map[string]any)
	}
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := spec[list].([]any)
		for i, c := range containers {
			container, _ := c.(map[string]any)
			variables, _ := container["env"].([]any)
			seen := map[any]bool{}
			for j, v := range variables {
				variable, _ := v.(map[string]any)
				if name := variable["name"]; seen[name] {
					texts = append(texts, fmt.Sprintf("%s.%s[%d].env[%d]: hides previous definition of %q, which may be dropped when using apply", path, list, i, j, name))
				}
				seen[variable["name"]] = true
			}
		}
	}
	return texts
}
