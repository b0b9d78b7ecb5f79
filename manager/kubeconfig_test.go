// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
)

// kubeconfig returns a file with the given contexts, each with a cluster whose host is
// the context's name.
func kubeconfig(current string, contexts ...string) string {
	text := "apiVersion: v1\nkind: Config\ncurrent-context: " + current + "\n"
	for _, part := range []string{"clusters", "contexts", "users"} {
		text += part + ":\n"
		for _, c := range contexts {
			text += "- name: " + c + "\n"
			switch part {
			case "clusters":
				text += "  cluster: {server: 'https://" + c + "'}\n"
			case "contexts":
				text += "  context: {cluster: " + c + ", user: " + c + "}\n"
			case "users":
				text += "  user: {token: secret-" + c + "}\n"
			}
		}
	}
	return text
}

func TestFindConfig_TheFirstPlaceThatIsThereDecides(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	must(t, os.MkdirAll(filepath.Join(home, ".kube"), 0o700))
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("home/.kube/config", kubeconfig("home", "home", "other"))
	flag := write("flag", kubeconfig("flag", "flag", "second"))
	environ := write("environ", kubeconfig("environ", "environ"))
	more := write("more", kubeconfig("", "more"))
	list := func(files ...string) string { return strings.Join(files, string(os.PathListSeparator)) }
	missing := filepath.Join(dir, "missing")

	pod := func() (*rest.Config, error) { return &rest.Config{Host: "https://pod"}, nil }
	noPod := func() (*rest.Config, error) { return nil, rest.ErrNotInCluster }
	noToken := func() (*rest.Config, error) { return nil, errors.New("open token: no such file") }

	for _, tc := range []struct {
		name                   string
		flag, context, environ string
		home                   string
		inCluster              func() (*rest.Config, error)
		host                   string   // wanted
		wants                  []string // of the error
		none                   bool     // it is ErrNoCluster
	}{
		{name: "flag before all", flag: flag, environ: environ, home: home, inCluster: pod, host: "https://flag"},
		{name: "KUBECONFIG before the pod", environ: environ, home: home, inCluster: pod, host: "https://environ"},
		{name: "the pod before the home", home: home, inCluster: pod, host: "https://pod"},
		{name: "the home last", home: home, inCluster: noPod, host: "https://home"},
		{name: "a pod without a token", home: home, inCluster: noToken, host: "https://home"},
		{name: "context of the flag's file", flag: flag, context: "second", inCluster: pod, host: "https://second"},
		{name: "context leaves the pod out", context: "other", home: home, inCluster: pod, host: "https://other"},
		{name: "KUBECONFIG merges", environ: list(more, missing, environ, ""), context: "more", inCluster: pod, host: "https://more"},
		{name: "KUBECONFIG takes the first current context", environ: list(more, environ), inCluster: pod, host: "https://environ"},

		{name: "flag names a missing file", flag: missing, environ: environ, inCluster: pod,
			wants: []string{`kubeconfig "` + missing + `", named by the flag -kubeconfig`, "file does not exist", "check the path"}},
		{name: "flag names a directory", flag: dir, inCluster: pod, wants: []string{dir + " is a directory"}},
		{name: "KUBECONFIG names only missing files", environ: list(missing, missing+"2"), home: home, inCluster: pod,
			wants: []string{missing, missing + "2", "the environment variable KUBECONFIG", "file does not exist"}},
		{name: "malformed", flag: write("malformed", "clusters: [}"), inCluster: pod,
			wants: []string{filepath.Join(dir, "malformed"), "it is malformed", "kubectl config view"}},
		{name: "another kind of file", flag: write("kind", "kind: Pod\napiVersion: v1\n"), inCluster: pod,
			wants: []string{filepath.Join(dir, "kind"), "malformed"}},
		{name: "empty", flag: write("empty", ""), inCluster: pod, wants: []string{filepath.Join(dir, "empty"), "it has no clusters"}},
		{name: "unknown context", flag: flag, context: "third", inCluster: pod,
			wants: []string{`it has no context "third"`, "there are: flag, second"}},
		{name: "no current context", flag: more, inCluster: pod, wants: []string{"it has no current context", "-context", "there are: more"}},
		{name: "dangling current context", flag: write("dangling", kubeconfig("gone", "here")), inCluster: pod,
			wants: []string{`current context "gone" is not in it`, "there are: here"}},
		{name: "dangling cluster", flag: write("noCluster", strings.Replace(kubeconfig("a", "a"), "cluster: a,", "cluster: gone,", 1)), inCluster: pod,
			wants: []string{filepath.Join(dir, "noCluster"), `its context "a" names cluster "gone", which is not in it; the clusters in it are: a`}},
		{name: "cluster without a server", flag: write("noServer", strings.Replace(kubeconfig("a", "a"), "server: 'https://a'", "server: ''", 1)), inCluster: pod,
			wants: []string{filepath.Join(dir, "noServer"), `its cluster "a" has no server; give it one with "kubectl config set-cluster a`}},
		{name: "dangling user", flag: write("noUser", strings.Replace(kubeconfig("a", "a"), "user: a}", "user: gone}", 1)), inCluster: pod,
			wants: []string{filepath.Join(dir, "noUser"), `its context "a" names user "gone", which is not in it; log in to the cluster again`}},
		{name: "no user", flag: write("anonymous", strings.Replace(kubeconfig("a", "a"), ", user: a}", "}", 1)), inCluster: pod, host: "https://a"},
		{name: "nothing anywhere", home: dir, inCluster: noPod, none: true,
			wants: []string{"no configuration found; give -kubeconfig a file, or set KUBECONFIG", "no -kubeconfig was given", "KUBECONFIG is not set",
				"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set", filepath.Join(dir, ".kube", "config") + " does not exist"}},
		{name: "not even a home", inCluster: noPod, none: true, wants: []string{"there is no home directory"}},
		{name: "a home that cannot be read", home: flag, inCluster: noPod, wants: []string{"not a directory"}},
		{name: "no home", inCluster: noToken, wants: []string{"open token: no such file", "there is no home directory"}},
		{name: "context, and no file", context: "x", inCluster: pod, wants: []string{`the pod's service account was left out, since it has no context "x"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, err := manager.FindIn(tc.environ, tc.home, tc.inCluster, tc.flag, tc.context)
			if len(tc.wants) == 0 {
				if err != nil || cfg.Host != tc.host {
					t.Fatalf("got %v, %v, want host %s", cfg, err, tc.host)
				}
				return
			}
			if got := errors.Is(err, manager.ErrNoCluster); got != tc.none {
				t.Errorf("%v: ErrNoCluster: %v, want %v", err, got, tc.none)
			}
			for _, want := range tc.wants {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v\nlacks %q", err, want)
				}
			}
		})
	}
}

func TestFindConfig_RelativePathsAreOfTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	text := strings.ReplaceAll(kubeconfig("a", "a"), "'https://a'", "'https://a', certificate-authority: ca.pem")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(file), "ca.pem"), nil, 0o600))
	cfg, err := manager.FindConfig(file, "")
	must(t, err)
	if want := filepath.Join(filepath.Dir(file), "ca.pem"); cfg.CAFile != want || cfg.BearerToken != "secret-a" {
		t.Errorf("CAFile %q, token %q, want %q and that of the file", cfg.CAFile, cfg.BearerToken, want)
	}
}

// Uses the real places: the environment and the home directory of this process.
func TestNew_FindsTheClusterAsKubectlDoes(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	must(t, os.Mkdir(filepath.Join(dir, ".kube"), 0o700))
	file := filepath.Join(dir, ".kube", "config")

	if _, err := manager.New(manager.Options{}); err == nil || !strings.Contains(err.Error(), file+" does not exist") {
		t.Errorf("New = %v, want an error that lists where it was looked", err)
	}
	must(t, os.WriteFile(file, []byte(kubeconfig("home", "home")), 0o600))
	m, err := manager.New(manager.Options{})
	must(t, err)
	if got := m.Config().Host; got != "https://home" {
		t.Errorf("host %q, want that of the home file", got)
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "gone"))
	if _, err := manager.New(manager.Options{}); err == nil || !strings.Contains(err.Error(), "named by the environment variable KUBECONFIG") {
		t.Errorf("New = %v, want an error that names the variable's file", err)
	}
}
