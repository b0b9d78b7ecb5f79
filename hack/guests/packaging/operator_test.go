// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package packaging_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// operator is one of the examples.
type operator struct {
	dir, base string // of the module, and in it
	name      string // of Deployment, ServiceAccount and namespace
	program   string
	sample    string // a file in dir
	resource  string // of the sample
	crd       string
}

var operators = []operator{
	{dir: "operator", base: "config", name: "frontend-operator", program: "operator", sample: "config/sample.yaml", resource: "frontend", crd: "frontends.example.flyball.dev"},
	{dir: "website", base: "deploy", name: "website", program: "website", sample: "config/sample.yaml", resource: "website", crd: "websites.example.flyball.dev"},
}

func (o operator) directory() string { return filepath.Join("..", "..", "..", "examples", o.dir) }

func newTokenRequest() *authenticationv1.TokenRequest {
	seconds := int64(3600)
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
}

// image packs an operator's image, and returns the program that it has, in a directory.
func (o operator) image(t *testing.T, dir, flyball string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image")
	finish(t, exec.CommandContext(t.Context(), flyball, "pack", "image", "-dirty", "-C", o.directory(), "-platform", "linux/"+runtime.GOARCH, "-program", o.program, "-o", out))
	blob := func(digest string) string { return filepath.Join(out, "blobs", strings.ReplaceAll(digest, ":", "/")) }
	digest := ""
	for _, file := range []string{"index.json", "index", "manifest"} {
		var m struct{ Manifests, Layers []struct{ Digest string } }
		at := filepath.Join(out, file)
		if digest != "" {
			at = blob(digest)
		}
		text, err := os.ReadFile(at)
		must(t, err)
		must(t, json.Unmarshal(text, &m))
		digest = append(m.Manifests, m.Layers...)[0].Digest
	}
	layer, err := os.Open(blob(digest))
	must(t, err)
	defer layer.Close()
	unzipped, err := gzip.NewReader(layer)
	must(t, err)
	files := tar.NewReader(unzipped)
	header, err := files.Next()
	must(t, err)
	if header.Name != o.program {
		t.Fatalf("the image begins with %s, want %s", header.Name, o.program)
	}
	file := filepath.Join(dir, o.program)
	program, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, os.FileMode(header.Mode))
	must(t, err)
	_, err = io.Copy(program, files)
	must(t, err)
	must(t, program.Close())
	return file
}

// finish runs a command to its end.
func finish(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// process is the operator in the place of a Pod of its Deployment.
type process struct {
	cmd   *exec.Cmd
	said  *lines
	done  chan struct{}
	ready string // its probe
}

// runs starts the program as the installed Deployment says: its arguments, its ServiceAccount
// alone, and mounts in place of directories. Only its addresses are others.
func (o operator) runs(t *testing.T, s *server, program, namespace string, mounts map[string]string) *process {
	t.Helper()
	d, err := s.api.AppsV1().Deployments(namespace).Get(t.Context(), o.name, metav1.GetOptions{})
	must(t, err)
	container := d.Spec.Template.Spec.Containers[0]
	probes, webhooks := freeAddress(t), freeAddress(t)
	args := append(container.Args, "-health-probe-bind-address="+probes, "-metrics-bind-address=127.0.0.1:0", "-webhook-bind-address="+webhooks)
	for from, to := range mounts {
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], from, to)
		}
	}
	p := &process{cmd: exec.Command(program, args...), said: &lines{}, done: make(chan struct{}), ready: "http://" + probes + probePath(container)}
	p.cmd.Env = []string{"KUBECONFIG=" + s.account(t, namespace, d.Spec.Template.Spec.ServiceAccountName), "POD_NAMESPACE=" + namespace}
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	must(t, p.cmd.Start())
	go func() { defer close(p.done); _ = p.cmd.Wait() }()
	s.webhooks.Store(&webhooks)
	t.Cleanup(func() {
		select {
		case <-p.done:
		default:
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		if t.Failed() {
			t.Logf("the operator printed\n%s", p.said)
		}
	})
	eventually(t, "the operator is ready", func() error {
		resp, err := http.Get(p.ready)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", resp.Status, text)
		}
		return nil
	})
	return p
}

func probePath(c corev1.Container) string { return c.ReadinessProbe.HTTPGet.Path }

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// works applies the sample, and expects it to become ready.
func (o operator) works(t *testing.T, s *server) {
	t.Helper()
	file := filepath.Join(o.directory(), o.sample)
	eventually(t, "the sample is admitted", func() error {
		_, err := s.run(t, "kubectl", "apply", "--server-side", "-f", file)
		return err
	})
	s.must(t, "kubectl", "wait", "--for=condition=Ready", "--timeout=60s", o.resource+"/sample")
}

// forgets deletes the sample, and as the garbage collector would, its children.
func (o operator) forgets(t *testing.T, s *server) {
	t.Helper()
	s.must(t, "kubectl", "delete", "--wait", "--timeout=60s", o.resource+"/sample")
	s.must(t, "kubectl", "delete", "--ignore-not-found", "deployment/sample", "service/sample", "configmap/sample")
}

// ends stops the operator, which was refused nothing.
func (p *process) ends(t *testing.T, s *server) {
	t.Helper()
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	<-p.done
	s.webhooks.Store(nil)
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the operator ended with %d", code)
	}
	if said := p.said.String(); strings.Contains(said, "orbidden") {
		t.Errorf("the operator was refused something:\n%s", said)
	}
}
