// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

// asProcess is set when a test has started its own binary as the operator.
const asProcess = "WEBSITE_AS_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
		return
	}
	code := m.Run()
	_ = os.RemoveAll(imageDir) // it lies among temporary files
	os.Exit(code)
}

// machine is a computer with only Go: no cluster, no files.
type machine struct{ home, temp string }

func newMachine(t *testing.T) machine {
	t.Helper()
	if _, err := os.Stat("/var/run/secrets/kubernetes.io/serviceaccount"); err == nil {
		t.Skip("this is a Pod, where nothing is simulated")
	}
	return machine{t.TempDir(), t.TempDir()}
}

// website returns a command that runs the operator there.
func (m machine) website(t *testing.T, environ []string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append([]string{asProcess + "=1", "HOME=" + m.home, "TMPDIR=" + m.temp, "PATH=" + os.Getenv("PATH")}, environ...)
	return cmd
}

// clean verifies that nothing is left there.
func (m machine) clean(t *testing.T) {
	t.Helper()
	for _, cache := range []string{".cache", "Library/Caches", "Library"} { // empty
		_ = os.Remove(filepath.Join(m.home, cache))
	}
	for _, dir := range []string{m.home, m.temp} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v, %v is left, want nothing", left, err)
		}
	}
}

func TestProcess_DemoNeedsNothing(t *testing.T) {
	m := newMachine(t)
	out, err := m.website(t, nil, "-demo").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rest := string(out)
	for _, want := range []string{"no cluster is configured", "applied Website", "its status is right", "3 of 3 replicas", "the Website is gone", "the ConfigMap is gone", "done"} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Errorf("it does not say %q, in this order:\n%s", want, out)
			break
		}
		rest = after
	}
	m.clean(t)
}

func TestProcess_ElectsALeaderWhenToldTo(t *testing.T) {
	m := newMachine(t)
	out, err := m.website(t, nil, "-demo", "-leader-elect", "-leader-election-namespace", "default").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Leader elected") || !strings.Contains(string(out), "done") {
		t.Errorf("%v, want the demo after an election:\n%s", err, out)
	}
	out, err = m.website(t, nil, "-demo", "-leader-elect").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "give -leader-election-namespace") {
		t.Errorf("%v, want an error that says what to give where there is no pod's namespace:\n%s", err, out)
	}
	m.clean(t)
}

// Any mention of a cluster selects that cluster, not a simulated one.
func TestProcess_SimulatesOnlyWhereNothingElseIsMeant(t *testing.T) {
	m := newMachine(t)
	broken := newMachine(t)
	if err := os.Mkdir(filepath.Join(broken.home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken.home, ".kube", "config"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		on      machine
		environ []string
		args    []string
		want    string
	}{
		"KUBECONFIG":      {m, []string{"KUBECONFIG=/is/not/there"}, nil, "named by the environment variable KUBECONFIG"},
		"-kubeconfig":     {m, nil, []string{"-kubeconfig", "/is/not/there"}, "named by the flag -kubeconfig"},
		"-context":        {m, nil, []string{"-context", "x"}, "no -kubeconfig was given"},
		"~/.kube/config":  {broken, nil, nil, "named by the home directory"},
		"a Pod":           {m, []string{"KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=443"}, nil, "this is no pod with a service account"},
		"-demo in a Pod":  {m, []string{"KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=443"}, []string{"-demo"}, "say which by -kubeconfig"},
		"-data elsewhere": {m, []string{"KUBECONFIG=/is/not/there"}, []string{"-data", m.temp}, "-data keeps what the simulated API server has"},
	} {
		out, err := c.on.website(t, c.environ, c.args...).CombinedOutput()
		if err == nil || strings.Contains(string(out), "simulates") || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, want an error that says %q:\n%s", name, err, c.want, out)
		}
	}
	m.clean(t)
}

// A file sets flags of the manager and of the program.
func TestProcess_TakesOptionsFromAFile(t *testing.T) {
	m := newMachine(t)
	for text, want := range map[string]string{
		"context: x":                    "no -kubeconfig was given",
		"webhooks: true\ndemo: true":    "leave out -local and -demo",
		"webhook: true":                 "line 1: webhook: no flag of this name can be set by a file",
		"demo: true\nleader-elect: yes": `line 2: leader-elect: "yes" is text; write true or false`,
	} {
		name := filepath.Join(t.TempDir(), "options.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := m.website(t, nil, "-config", name).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v, want an error that says %q:\n%s", text, err, want, out)
		}
	}
	m.clean(t)
}

// started is an operator that has printed how to reach its server.
type started struct {
	*exec.Cmd
	said   []string // lines, up to the one that says how to stop it
	sites  dynamic.ResourceInterface
	sample *unstructured.Unstructured
	errors *bytes.Buffer
}

func (m machine) start(t *testing.T, args ...string) *started {
	t.Helper()
	p := &started{Cmd: m.website(t, nil, args...), errors: &bytes.Buffer{}}
	p.Stderr = p.errors
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	kubeconfig := ""
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "stop with ctrl-c"; {
		p.said = append(p.said, lines.Text())
		if path, ok := strings.CutPrefix(lines.Text(), "kubeconfig: "); ok {
			kubeconfig = path
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatalf("it says %q, want a kubeconfig: %v", p.said, err)
	}
	clients, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.sites = clients.Resource(webv1.GroupVersion.WithResource("websites")).Namespace("default")
	text, err := os.ReadFile(filepath.Join(filepath.Dir(kubeconfig), sampleFile))
	if err != nil {
		t.Fatalf("beside the kubeconfig is no sample to apply: %v", err)
	}
	p.sample = &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, p.sample); err != nil {
		t.Fatal(err)
	}
	return p
}

// waitReady returns when the sample is served.
func (p *started) waitReady(t *testing.T) {
	t.Helper()
	w, err := p.sites.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + p.sample.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		site, _ := e.Object.(*unstructured.Unstructured)
		if ready, _, _ := unstructured.NestedInt64(site.Object, "status", "readyReplicas"); ready == 2 {
			return
		}
	}
	t.Fatalf("the watch ended before the sample was served:\n%s", p.errors)
}

func (p *started) stop(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil || strings.Contains(p.errors.String(), "ERROR") {
		t.Errorf("told to stop: %v, want a quiet end:\n%s", err, p.errors)
	}
}

func TestProcess_ServesUntilItIsStopped(t *testing.T) {
	m := newMachine(t)
	p := m.start(t)
	if _, err := p.sites.Create(t.Context(), p.sample, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.waitReady(t)
	p.stop(t, os.Interrupt)
	m.clean(t)
}

// The simulated server calls the webhooks of this process. The kubeconfig is where it was before.
func TestProcess_ServesWebhooksToTheSimulatedServer(t *testing.T) {
	m := newMachine(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	var kubeconfigs []string
	for range 2 {
		p := m.start(t, "-webhooks", "-webhook-bind-address", address)
		host := ""
		for ctx := t.Context(); host == "" && ctx.Err() == nil; { // until the configuration has its CA
			site := p.sample.DeepCopy()
			err := unstructured.SetNestedField(site.Object, "Www.Example.Com.", "spec", "host")
			if err == nil {
				site, err = p.sites.Create(ctx, site, metav1.CreateOptions{})
			}
			if err == nil {
				host, _, err = unstructured.NestedString(site.Object, "spec", "host")
			}
			if err != nil && !strings.Contains(err.Error(), "failed calling webhook") {
				t.Fatal(err)
			}
		}
		if host != "www.example.com" {
			t.Errorf("the host is %q, want it as the webhook writes it", host)
		}
		at := slices.IndexFunc(p.said, func(line string) bool { return strings.HasPrefix(line, "kubeconfig: ") })
		kubeconfigs = append(kubeconfigs, p.said[at])
		p.stop(t, os.Interrupt)
	}
	if kubeconfigs[0] != kubeconfigs[1] || !strings.Contains(kubeconfigs[0], m.home) {
		t.Errorf("the starts print %q, want one kubeconfig twice", kubeconfigs)
	}
	m.clean(t)
}

func TestProcess_DataOutlivesIt(t *testing.T) {
	m, data := newMachine(t), t.TempDir()
	p := m.start(t, "-data", data)
	made, err := p.sites.Create(t.Context(), p.sample, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.waitReady(t)
	p.stop(t, os.Interrupt)

	p = m.start(t, "-data", data)
	p.waitReady(t)
	if again, err := p.sites.Get(t.Context(), made.GetName(), metav1.GetOptions{}); err != nil || again.GetUID() != made.GetUID() {
		t.Errorf("after the second start there is %v, %v, want the Website of the first", again, err)
	}
	p.stop(t, os.Interrupt)
	m.clean(t)
	if left, err := os.ReadDir(data); err != nil || len(left) != 2 {
		t.Errorf("in the directory are %v, %v, want journal and lock", left, err)
	}
}

// A production build contains neither the server nor its dependencies.
func TestProduction_SimulatesNothing(t *testing.T) {
	linked := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"list", "-deps"}, args...), ".")...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if !strings.Contains(linked(), "/flyball/simulate\n") {
		t.Error("without the tag nothing is simulated either; this test looks at nothing")
	}
	for line := range strings.Lines(linked("-tags", "production")) {
		for _, heavy := range []string{"flyball/simulate", "k8s.io/apiextensions-apiserver", "k8s.io/apiserver", "cel-go", "antlr"} {
			if strings.Contains(line, heavy) {
				t.Errorf("production links %s", strings.TrimSpace(line))
			}
		}
	}
}
