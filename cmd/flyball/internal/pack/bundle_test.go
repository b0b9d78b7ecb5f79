// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"archive/tar"
	"errors"
	"flag"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares text with a file.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		write(t, file, text)
	}
	if want := read(t, file); text != want {
		t.Errorf("%s: got\n%s\nwant\n%s\nrun the test with -update if that is right", file, text, want)
	}
}

func bundleOf(t *testing.T, dir, deployment string, more ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "bundle")
	mustPack(t, append(append([]string{"bundle", "-o", out, "-version", "1.2.3", "-deployment", deployment}, more...), dir)...)
	return out
}

func TestBundle_GrantsTheRulesOfTheBase_L5(t *testing.T) {
	out := bundleOf(t, "testdata/edited", "operator", "-channel", "stable")
	var all strings.Builder
	err := filepath.WalkDir(out, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ".flyball-pack" {
			return err
		}
		name, err := filepath.Rel(out, file)
		all.WriteString("== " + filepath.ToSlash(name) + " ==\n" + read(t, file))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/bundle.txt", all.String())
}

// OLM changes neither arguments nor objects, so a person must know what would not fit.
func TestBundle_WhatDoesNotMoveIsAWarning_L5(t *testing.T) {
	_, _, messages := pack(t, "bundle", "-o", filepath.Join(t.TempDir(), "out"), "-deployment", "operator", "testdata/edited")
	for _, want := range []string{
		"warning: OLM creates ServiceAccount edited/operator without its annotations\n", "warning: Deployment operator names the namespace edited",
		"warning: ServiceMonitor operator names the namespace edited", "warning: ConfigMap settings names the namespace edited",
	} {
		if !strings.Contains(messages, want) {
			t.Errorf("there is no %q in\n%s", want, messages)
		}
	}
	if strings.Count(messages, "warning") != 4 {
		t.Errorf("there are other warnings:\n%s", messages)
	}
}

func TestBundle_VersionThatIsNoNameIsExplained_L5(t *testing.T) {
	for _, version := range []string{"1.2.3+build", "1.2.3-RC1"} {
		code, _, messages := pack(t, "bundle", "-o", filepath.Join(t.TempDir(), "out"), "-version", version, "../../../../examples/operator/config")
		if code != failure || !strings.Contains(messages, "give another with -version") {
			t.Errorf("%s: exit code %d, want %d, and what to do in\n%s", version, code, failure, messages)
		}
	}
}

// A role that others have, too, stays for them.
func TestBundle_SharedRoleStays_L5(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kustomization.yaml"), "resources: [all.yaml]\n")
	write(t, filepath.Join(dir, "all.yaml"), operatorOf+`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shared}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: people}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: shared}
subjects: [{kind: Group, name: people}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: program}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: shared}
subjects: [{kind: ServiceAccount, name: operator, namespace: ns}]
`)
	manifests := filepath.Join(bundleOf(t, dir, "", "-channel", "1.0"), "bundle", "manifests")
	if !strings.Contains(read(t, filepath.Join(manifests, "operator.clusterserviceversion.yaml")), "serviceAccountName: operator") {
		t.Error("the operator is not granted the rules")
	}
	for file, there := range map[string]bool{"shared_clusterrole.yaml": true, "people_clusterrolebinding.yaml": true, "program_clusterrolebinding.yaml": false} {
		if _, err := os.Stat(filepath.Join(manifests, file)); (err == nil) != there {
			t.Errorf("%s: %v, want that it is there: %v", file, err, there)
		}
	}
	var annotations struct{ Annotations map[string]any }
	err := yaml.Unmarshal([]byte(read(t, filepath.Join(manifests, "..", "metadata", "annotations.yaml"))), &annotations)
	for key, value := range annotations.Annotations {
		if _, isText := value.(string); !isText {
			t.Errorf("%s is %v, which is no text", key, value)
		}
	}
	if err != nil || len(annotations.Annotations) == 0 {
		t.Errorf("the annotations are %v (%v)", annotations.Annotations, err)
	}
}

func TestBundle_HasSamplesAndMergedFields_L5(t *testing.T) {
	file := filepath.Join(t.TempDir(), "csv.yaml")
	write(t, file, "spec:\n  maturity: stable\n  maintainers: [{name: Jane, email: jane@example.com}]\n  installModes: null\n")
	out := bundleOf(t, "../../../../examples/operator/config", "", "-merge", file)
	var csv struct {
		Metadata struct{ Annotations map[string]string }
		Spec     map[string]any
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(out, "bundle", "manifests", "frontend-operator.clusterserviceversion.yaml"))), &csv); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(csv.Metadata.Annotations["alm-examples"], `"kind": "Frontend"`) {
		t.Errorf("the samples are %s", csv.Metadata.Annotations["alm-examples"])
	}
	if csv.Spec["maturity"] != "stable" || csv.Spec["maintainers"] == nil || csv.Spec["installModes"] != nil {
		t.Errorf("the spec is %v, want the merged fields", csv.Spec)
	}
}

// The image that is pushed is that of the Dockerfile.
func TestBundle_ImageHasTheFilesAndLabels_L5(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://") + "/me/operator-bundle:v1.2.3"
	out := filepath.Join(t.TempDir(), "bundle")
	said := mustPack(t, "bundle", "-o", out, "-version", "1.2.3", "-push", at, "../../../../examples/operator/config")
	tag, err := name.NewDigest(strings.TrimSpace(said))
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "arm64"}))
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	dockerfile, labels := read(t, filepath.Join(out, "bundle.Dockerfile")), 0
	for key, value := range config.Config.Labels {
		if labels++; !strings.Contains(dockerfile, "LABEL "+key+"="+value+"\n") {
			t.Errorf("the Dockerfile has no label %s=%s", key, value)
		}
	}
	if labels != strings.Count(dockerfile, "LABEL ") {
		t.Errorf("the image has the labels %v, want those of\n%s", config.Config.Labels, dockerfile)
	}
	files, count := tar.NewReader(mutate.Extract(img)), 0
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			count++
			if text, err := io.ReadAll(files); err != nil || string(text) != read(t, filepath.Join(out, "bundle", header.Name)) {
				t.Errorf("%s differs in the image (%v)", header.Name, err)
			}
		}
	}
	if count != 4 {
		t.Errorf("the image has %d files, want two manifests, the annotations and the tests", count)
	}
}

// operatorOf is the Deployment of a base.
const operatorOf = `apiVersion: apps/v1
kind: Deployment
metadata: {name: operator, namespace: ns}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec: {serviceAccountName: operator, containers: [{name: operator, image: "a:1.2.3"}]}
---
`

func TestBundle_WhatTheManagerCannotInstallIsExplained_L5(t *testing.T) {
	for _, c := range []struct{ name, object, want string }{
		{"a kind", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a, namespace: ns}\n", "OLM installs no Ingress: leave Ingress ns/a out"},
		{"a namespace", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}\n", "ConfigMap other/a is not in the operator's"},
		{"a Deployment", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: other}\nspec: {}\n", "-deployment"},
		{"a role of the cluster", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: a}\nroleRef: {kind: ClusterRole, name: view}\nsubjects: [{kind: ServiceAccount, name: operator, namespace: ns}]\n", "write them into a role of the base"},
		{"another namespace's role", "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a, namespace: kube-system}\nroleRef: {kind: Role, name: r}\nsubjects: [{kind: ServiceAccount, name: operator, namespace: ns}]\n", "use a ClusterRole"},
		{"a selector", "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: ns}\nspec: {selector: {app: operator}, ports: [{port: 443}]}\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: w}\nwebhooks: [{name: a.b.c, namespaceSelector: {}, clientConfig: {service: {name: s, namespace: ns}}}]\n", "has namespaceSelector, which OLM cannot set"},
		{"no Service", "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: w}\nwebhooks: [{name: a.b.c, clientConfig: {service: {name: s, namespace: ns}}}]\n", "no Service ns/s; add it"},
		{"a URL", "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: w}\nwebhooks: [{name: a.b.c, clientConfig: {url: \"https://example.com\"}}]\n", "names no service"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "kustomization.yaml"), "resources: [all.yaml]\n")
			write(t, filepath.Join(dir, "all.yaml"), operatorOf+c.object)
			out := filepath.Join(dir, "out")
			code, _, messages := pack(t, "bundle", "-o", out, dir)
			if code != failure && code != usage || !strings.Contains(messages, c.want) {
				t.Errorf("exit code %d, want %d, and %q in\n%s", code, failure, c.want, messages)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("a bundle was written")
			}
		})
	}
}
