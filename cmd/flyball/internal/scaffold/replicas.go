// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// AddReplicas lets the replicas of the operator's Deployment share its objects: its manifests,
// an example of an autoscaler, and tests.
func (a Addition) AddReplicas() ([]string, error) {
	return a.add(func(p plan, all files) error {
		if err := checkReplicas(p.Replicas); err != nil {
			return err
		}
		return all.addReplicas(p, "replicas_test.go")
	})
}

const autoscalerFile = "config/autoscaler.yaml"

// addReplicas lets the replicas of a plan's operator share its objects. The test is added to the
// file of this name.
func (all files) addReplicas(p plan, tests string) error {
	r := replicas{p.operator + "-operator", p.Replicas}
	manifests, bare, err := r.manifests(string(all["config/operator.yaml"]), p.words(leaderRights()))
	if err != nil {
		return err
	}
	for _, name := range []string{autoscalerFile, "replicas_test.go"} {
		if all[name] != nil {
			return fmt.Errorf("%s is there already: move it", name)
		}
	}
	p.replaced["config/operator.yaml"] = []byte(bare)
	all["config/operator.yaml"], all[autoscalerFile] = []byte(manifests), []byte(r.autoscaler())
	test, err := p.partFile("replicas/replicas_test.go", "")
	if err == nil && all[tests] != nil {
		test, err = p.merge(tests, all[tests], test)
	}
	if err != nil {
		return err
	}
	all[tests] = test
	all["operator_test.go"], err = gotree.Edit("operator_test.go", all["operator_test.go"], func(f *gotree.File) error {
		return insert(f, []insertion{
			{"TestRights", "used.Check", "// Replicas that share objects have further Leases.\n" +
				"cfg.Manager.Sharding = &manager.Sharding{Shards: 8}\nkit.Test(t, cfg, scenario)\n", ""},
			{"TestControlPlane", "manager.New(opts)", "opts.Sharding = &manager.Sharding{Shards: 8}\n", ""},
		})
	})
	return err
}

// mostReplicas have eight shards each, of 4096 that a manager can have.
const mostReplicas = 512

func checkReplicas(n int) error {
	if n < 2 || n > mostReplicas {
		return fmt.Errorf("%d replicas cannot share objects: give a number from 2 to %d, such as flyball add replicas 3", n, mostReplicas)
	}
	return nil
}

// shardsFor returns into how many shards so many replicas divide objects: eight for each, with
// room for more replicas.
func shardsFor(replicas int) int {
	n := 32
	for n < 8*replicas {
		n *= 2
	}
	return n
}

// replicas of an operator's Deployment.
type replicas struct {
	operator string // name of the Deployment
	number   int
}

var replicasLine = regexp.MustCompile(`(?m)^  replicas: \d+\n`)

// manifests returns config/operator.yaml with what replicas need, and what stays of it as it was:
// they replace the number of replicas, and the rights to the Lease of a leader.
func (r replicas) manifests(text, leaderRights string) (out, bare string, err error) {
	name := r.operator
	document := deploymentIn(text, name)
	number := replicasLine.FindString(document)
	switch {
	case document == "":
		return "", "", fmt.Errorf("config/operator.yaml has no Deployment %s", name)
	case strings.Contains(document, "- -shards="):
		return "", "", fmt.Errorf("the replicas of the Deployment %s share objects already: change its replicas, and if there are fewer than eight shards for each, -shards", name)
	case number == "":
		return "", "", fmt.Errorf("the Deployment %s in config/operator.yaml has no line \"  replicas: 1\"; write one", name)
	}
	for _, taken := range []string{"strategy:", "topologySpreadConstraints:", "env:"} {
		if countLines(document, taken) > 0 {
			return "", "", fmt.Errorf("the Deployment %s in config/operator.yaml has %q already; move it away, run the command again, and unite both", name, taken)
		}
	}
	deployment, err := r.deployment(document, number)
	if err != nil {
		return "", "", err
	}
	bare = strings.Replace(text, document, strings.Replace(document, number, "", 1), 1)
	bare = strings.Replace(bare, leaderRights, "", 1)
	out = insertAfter(strings.Replace(text, document, deployment, 1), deployment, r.disruptionBudget())
	out = strings.Replace(out, leaderRights, "", 1)
	rule := rule("coordination.k8s.io", "leases", "get, list, watch, create, update, delete", "keep: replicas have Leases of random names")
	with, err := inserted([]byte(out), []place{{"kind: Role ", "rules:\n", rule}})
	return string(with), bare, err
}

// deploymentIn returns the document of the Deployment with a name. Empty: there is none.
func deploymentIn(manifests, name string) string {
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		if strings.Contains("\n"+document, "\nkind: Deployment\n") && strings.Contains("\n"+document+"\n", "\n  name: "+name+"\n") {
			return document
		}
	}
	return ""
}

// leaderRights returns the template's rules for the Lease of a leader. Where people have changed
// them, they stay.
func leaderRights() string {
	_, role, _ := strings.Cut(string(unpack(templateArchive)["config/operator.yaml"]), "\nkind: Role ")
	_, rules, _ := strings.Cut(role, "rules:\n")
	rules, _, _ = strings.Cut(rules, "---\n")
	return rules
}

// deployment is the operator's Deployment with replicas that share its objects.
func (r replicas) deployment(document, number string) (string, error) {
	out := strings.Replace(document, number, fmt.Sprintf(`  replicas: %d
  strategy: # a rollout moves the shards of one replica after the other
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 1
      maxSurge: 1
`, r.number), 1)
	for _, i := range []struct{ before, line, after string }{
		{"", "            - -leader-elect\n", fmt.Sprintf("            - -shards=%d # at least eight for each replica\n", shardsFor(r.number))},
		{`          env:
            - name: POD_IP # by which people reach the console of this replica
              valueFrom:
                fieldRef:
                  fieldPath: status.podIP
`, "          args:\n", ""},
		{fmt.Sprintf(`      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              app.kubernetes.io/name: %s
`, r.operator), "      containers:\n", ""},
	} {
		if strings.Count(out, i.line) != 1 {
			return "", fmt.Errorf("the Deployment %s in config/operator.yaml has not once the line %q; write it so", r.operator, strings.TrimSpace(i.line))
		}
		out = strings.Replace(out, i.line, i.before+i.line+i.after, 1)
	}
	return out, nil
}

func (r replicas) disruptionBudget() string {
	return fmt.Sprintf(`apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: %[1]s
  namespace: %[1]s
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app.kubernetes.io/name: %[1]s
`, r.operator)
}

// autoscaler is an example, which config/kustomization.yaml does not list.
func (r replicas) autoscaler() string {
	return fmt.Sprintf(`# An example, which is not deployed: the backlog decides how many replicas there are. It needs
# an adapter that serves the operator's metrics as metrics of Pods, such as prometheus-adapter.
# To use it, add it to the resources in kustomization.yaml, and remove replicas from the
# Deployment in operator.yaml.
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: %[1]s
  namespace: %[1]s
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: %[1]s
  minReplicas: 2
  maxReplicas: %[2]d # an eighth of -shards
  metrics:
    - type: Pods
      pods:
        metric:
          name: workqueue_depth
        target:
          type: AverageValue
          averageValue: "500" # keys that one replica reconciles in a minute
  behavior:
    scaleUp:
      stabilizationWindowSeconds: 60 # a backlog after a start is not load
    scaleDown:
      stabilizationWindowSeconds: 600 # each change moves shards
`, r.operator, shardsFor(r.number)/8)
}
