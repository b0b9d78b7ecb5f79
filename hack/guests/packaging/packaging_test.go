// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package packaging_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tools are the programs of the test.
type tools struct {
	flyball, helm string
	programs      map[string]string // of the images, by the names of operators; built when needed
}

func build(t *testing.T) tools {
	t.Helper()
	dir := t.TempDir()
	out := tools{flyball: filepath.Join(dir, "flyball"), helm: filepath.Join(dir, "helm"), programs: map[string]string{}}
	finish(t, exec.CommandContext(t.Context(), "go", "build", "-C", "../../../cmd", "-o", out.flyball, "./flyball"))
	finish(t, exec.CommandContext(t.Context(), "go", "build", "-C", "..", "-ldflags=-s -w", "-o", out.helm, "helm.sh/helm/v4/cmd/helm"))
	return out
}

// Each operator is installed in three ways on both servers, and runs with the rights of its
// ServiceAccount alone. What is uninstalled leaves nothing but what the test names.
func TestPackaging_RunsWithItsRightsAlone_L4_L5(t *testing.T) {
	tools := build(t)
	for _, name := range []string{"simulated", "real"} {
		t.Run(name, func(t *testing.T) {
			s := start(t, name, tools.helm)
			for _, o := range operators {
				t.Run(o.name, func(t *testing.T) {
					if tools.programs[o.name] == "" {
						tools.programs[o.name] = o.image(t, filepath.Dir(tools.flyball), tools.flyball)
					}
					before := s.objects(t)
					t.Run("kustomize", func(t *testing.T) { kustomize(t, s, o, tools) })
					clean(t, s, o, o.name, before)
					t.Run("helm", func(t *testing.T) { helm(t, s, o, tools) })
					clean(t, s, o, "elsewhere", before)
					t.Run("olm", func(t *testing.T) { bundle(t, s, o, tools) })
					clean(t, s, o, "operators", before)
				})
			}
		})
	}
}

// clean expects nothing of the operator but its lease and certificate, in a namespace, and
// deletes these. The server removes the APIService of a kind some time after its definition.
func clean(t *testing.T, s *server, o operator, namespace string, before map[string]bool) {
	t.Helper()
	eventually(t, "what "+o.name+" is made of is gone", func() error {
		var problems []error
		for _, name := range s.left(t, before) {
			kind, rest, _ := strings.Cut(name, " ")
			in, object, _ := strings.Cut(rest, "/")
			switch {
			case name == "Namespace /"+namespace:
			case in == namespace && (kind == "Lease" || kind == "Secret" && strings.HasSuffix(object, "-webhook-cert")):
				s.must(t, "kubectl", "-n", in, "delete", strings.ToLower(kind), object)
			default:
				problems = append(problems, fmt.Errorf("%s is left", name))
			}
		}
		return errors.Join(problems...)
	})
	s.removeNamespace(t, namespace)
}

func kustomize(t *testing.T, s *server, o operator, tools tools) {
	base := filepath.Join(o.directory(), o.base)
	s.must(t, "kubectl", "apply", "--server-side", "-k", base)
	p := o.runs(t, s, tools.programs[o.name], o.name, nil)
	o.works(t, s)
	o.forgets(t, s)
	p.ends(t, s)
	s.must(t, "kubectl", "delete", "--wait=false", "-k", base)
}

func helm(t *testing.T, s *server, o operator, tools tools) {
	chart := filepath.Join(t.TempDir(), "chart")
	finish(t, exec.CommandContext(t.Context(), tools.flyball, "pack", "chart", "-C", o.directory(), "-o", chart, "-version", "1.2.3", o.base))
	s.must(t, "helm", "lint", "--strict", chart)
	in := []string{"-n", "elsewhere"}
	run := func(args ...string) string { t.Helper(); return s.must(t, "helm", append(in, args...)...) }
	get := func(path string) string {
		t.Helper()
		return s.must(t, "kubectl", append(in, "get", "deployment", o.name, "-o", "jsonpath={"+path+"}")...)
	}
	run("install", "release", chart, "--create-namespace", "--wait", "--timeout", "2m")
	before := get(".spec")
	p := o.runs(t, s, tools.programs[o.name], "elsewhere", nil)
	o.works(t, s)

	run("upgrade", "release", chart, "--wait", "--timeout", "2m", "--set", "replicas=3,resources.limits.memory=1Gi,serviceAccount.annotations.role=a,crds.keep=true", "--set-json", `args=["-log-level=debug"]`)
	if got := get(".spec.replicas} {.spec.template.spec.containers[0].resources.limits.memory} {.spec.template.spec.containers[0].args"); !strings.HasPrefix(got, "3 1Gi ") || !strings.HasSuffix(got, `"-log-level=debug"]`) {
		t.Errorf("after the upgrade: %s", got)
	}
	o.works(t, s) // the certificate that the operator has written is still there
	for _, c := range []struct{ set, want string }{
		{"replica=3", "'replica'"}, {"replicas=many", "'/replicas'"}, {"image.digest=abc", "'/image/digest'"}, {"resources.memory=1Gi", "'memory'"}, {"crds.kep=true", "'kep'"},
	} {
		if out, err := s.run(t, "helm", append(in, "upgrade", "release", chart, "--set", c.set)...); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("helm upgrade --set %s: %v, want an error that names %s:\n%s", c.set, err, c.want, out)
		}
	}
	run("rollback", "release", "1", "--wait", "--timeout", "2m")
	if after := get(".spec"); after != before {
		t.Errorf("after the rollback the Deployment is\n%s\nwant\n%s", after, before)
	}
	o.works(t, s)

	p.ends(t, s)
	run("uninstall", "release", "--wait", "--timeout", "2m")
	if out := s.must(t, "kubectl", "get", "crd", o.crd, "-o", "name"); !strings.Contains(out, o.crd) {
		t.Errorf("the CustomResourceDefinition is gone: %s", out)
	}
	// Its objects are, too, but their webhooks are gone.
	s.must(t, "kubectl", "delete", "--ignore-not-found", "deployment/sample", "service/sample", "configmap/sample")
	s.must(t, "kubectl", "patch", "--type=merge", o.resource+"/sample", "-p", `{"metadata":{"finalizers":null}}`)
	s.must(t, "kubectl", "delete", o.resource+"/sample")
	s.must(t, "kubectl", "delete", "crd", o.crd)
}

func bundle(t *testing.T, s *server, o operator, tools tools) {
	out := filepath.Join(t.TempDir(), "bundle")
	finish(t, exec.CommandContext(t.Context(), tools.flyball, "pack", "bundle", "-C", o.directory(), "-o", out, "-version", "1.2.3", "-sample", o.sample, o.base))
	made := olm(t, valid(t, filepath.Join(out, "bundle")), "operators")
	file := made.file(t)
	s.must(t, "kubectl", "apply", "--server-side", "-f", file)
	p := o.runs(t, s, tools.programs[o.name], "operators", made.mounts)
	o.works(t, s)
	o.forgets(t, s)
	p.ends(t, s)
	s.must(t, "kubectl", "delete", "--wait=false", "-f", file)
}
