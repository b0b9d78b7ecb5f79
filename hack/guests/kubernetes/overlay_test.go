// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// swap is a line of Kubernetes and its replacement.
type swap struct{ from, to string }

const (
	here = "github.com/flyball-dev/flyball/hack/guests/kubernetes"
	ours = here + "/underneath"
)

// copied are the packages of Kubernetes that are changed, and those between them and the
// program. go build replaces no file of the module cache, so they are built as packages of
// this module that exist only in the overlay.
var copied = []string{"cmd/kube-controller-manager/app", "cmd/kube-scheduler/app", "cmd/kube-scheduler/app/options"}

// swaps are all changes to Kubernetes, by file: the calls that create a factory of
// informers create flyball's.
var swaps = map[string][]swap{
	"cmd/kube-controller-manager/app/controllermanager.go": {
		{`informers.NewSharedInformerFactoryWithOptions(versionedClient, ResyncPeriod(s)(), informers.WithTransform(trim), informers.WithInformerName(informerName))`,
			`underneath.Typed(ctx, rootClientBuilder.ConfigOrDie("shared-informers"), versionedClient, trim, informerName)`},
		{`metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, ResyncPeriod(s)(), metadatainformer.WithTransform(trim))`,
			`underneath.Metadata(ctx, metadataConfig, trim)`},
		{`	"k8s.io/client-go/metadata/metadatainformer"`, `	"` + ours + `"`},
	},
	"cmd/kube-scheduler/app/options/options.go": {
		{`scheduler.NewInformerFactory(client, 0, o.InformerName)`, `underneath.Scheduler(ctx, c.KubeConfig, client, o.InformerName)`},
		{`dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynClient, 0, corev1.NamespaceAll, nil)`, `underneath.Dynamic(ctx, c.KubeConfig)`},
		{`	dynClient := dynamic.NewForConfigOrDie(c.KubeConfig)`, `	_, _ = dynamic.NewForConfig, scheduler.New`},
		{`	"k8s.io/client-go/dynamic/dynamicinformer"`, `	"` + ours + `"`},
	},
}

// build builds the program of package kube with flyball's informers underneath, or with
// peer on client-go's own.
func build(t *testing.T, peer bool) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"build", "-o", filepath.Join(dir, "kube"), "-ldflags=-s -w"}
	if !peer {
		args = append(args, "-overlay="+overlay(t, dir))
	}
	output(t, "go", append(args, "./kube")...)
	return filepath.Join(dir, "kube")
}

// overlay writes the copied files and the overlay file for go build.
func overlay(t *testing.T, dir string) string {
	t.Helper()
	root := strings.TrimSpace(output(t, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"))
	module, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	replaced := map[string]string{}
	put := func(name, from string) {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(to, []byte(changed(t, name, string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(module, "kube", name)] = to
	}
	put("main.go", filepath.Join(module, "kube", "main.go"))
	for _, pkg := range copied {
		files, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("Kubernetes has no package %s: %v", pkg, err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				put(pkg+"/"+filepath.Base(file), file)
			}
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// changed returns a file with its swaps applied, which imports the copies.
func changed(t *testing.T, name, text string) string {
	t.Helper()
	for _, s := range swaps[name] {
		if n := strings.Count(text, s.from); n != 1 {
			t.Fatalf("%s has %q %d times, want once: this Kubernetes makes its informers in another way", name, s.from, n)
		}
		text = strings.Replace(text, s.from, s.to, 1)
	}
	for _, pkg := range copied {
		text = strings.ReplaceAll(text, `"k8s.io/kubernetes/`+pkg+`"`, `"`+here+`/kube/`+pkg+`"`)
	}
	return text
}

// output runs a command and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &said)
	}
	return string(out)
}
