// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newWorkflow(d draw, meta metav1.ObjectMeta) *Workflow {
	w := &Workflow{ObjectMeta: meta}
	w.Spec.Entrypoint = "main"
	started := meta.CreationTimestamp.Unix()
	w.Status = WorkflowStatus{
		Phase: "Succeeded", StartedAt: of(metav1.Unix(started, 0)), FinishedAt: of(after(started, 5000)), Nodes: map[string]WorkflowNode{},
		Conditions: []metav1.Condition{customCondition(d, "Completed", "Succeeded", sentence(d, 10), &meta)},
	}
	for _, n := range d.Perm(len(words))[:10] {
		step := words[n]
		w.Spec.Arguments = append(w.Spec.Arguments, Parameter{Name: step, Value: "s3://" + d.word() + "/" + d.digest()[:24]})
		w.Spec.Templates = append(w.Spec.Templates, WorkflowTemplate{
			Name: step, Image: "registry.example.com/" + meta.Namespace + "/" + step + ":" + version(d), Command: []string{"/bin/bash", "-euo", "pipefail", "-c"},
			Inputs: []Parameter{{Name: "from"}, {Name: "until"}}, Source: script(d, 21), Resources: resources(d), Retries: of(int32(3)),
			Env: []corev1.EnvVar{{Name: "BUCKET", Value: meta.Namespace + "-" + step}, fieldVariable("POD_NAME", "metadata.name")},
		})
	}
	previous := ""
	for range 32 {
		node := workflowNode(d, &meta, pick(d, w.Spec.Templates).Name, started)
		if previous != "" {
			node.Children = []string{previous}
		}
		previous = node.ID
		w.Status.Nodes[node.ID] = node
	}
	return w
}

func workflowNode(d draw, meta *metav1.ObjectMeta, template string, started int64) WorkflowNode {
	ip := hostIP(d.IntN(3000))
	begin := started + int64(d.IntN(4000))
	return WorkflowNode{
		ID: fmt.Sprintf("%s-%d", meta.Name, d.Uint32()), Name: meta.Name + "." + template, DisplayName: template, Type: "Pod", Template: template, Phase: "Succeeded",
		Message: sentence(d, 30), StartedAt: metav1.Unix(begin, 0), FinishedAt: after(begin, int64(d.IntN(900))),
		Host:      fmt.Sprintf("ip-172-%d-%d-%d.ec2.internal", ip[1], ip[2], ip[3]),
		Inputs:    []Parameter{{Name: "from", Value: fmt.Sprint(begin)}, {Name: "until", Value: fmt.Sprint(begin + 900)}},
		Outputs:   []Parameter{{Name: "result", Value: "s3://" + d.word() + "/" + d.digest()}, {Name: "exitCode", Value: "0"}},
		Resources: map[string]int64{"cpu": int64(d.IntN(9000)), "memory": int64(d.IntN(90_000))},
	}
}

// sentence returns n words.
func sentence(d draw, n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = d.word()
	}
	return strings.Join(parts, " ")
}

// script returns a text of n lines.
func script(d draw, n int) string {
	var out strings.Builder
	out.WriteString("#!/bin/bash\nset -euo pipefail\n")
	for range n {
		fmt.Fprintf(&out, "if ! %s --%s=\"${%s}\" --limit=%d > /tmp/%s.json; then\n  echo \"%s\" >&2\nfi\n",
			d.word(), d.word(), strings.ToUpper(d.word()), d.IntN(10_000), d.word(), sentence(d, 3))
	}
	return out.String()
}
