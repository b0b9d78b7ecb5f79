// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/client"
)

// replica is a process that acts as a Pod of the Deployment: the image's program, its
// arguments, its ServiceAccount. Only its ports differ, so several fit on one machine.
type replica struct {
	name  string
	cmd   *exec.Cmd
	ports map[string]string // from the container's ports to the actual addresses
	done  chan struct{}     // closed when it has ended
	mu    struct {
		sync.Mutex
		text bytes.Buffer
	}
}

// listens matches an argument with a listen address.
var listens = regexp.MustCompile(`^(-[a-z-]+-bind-address=):(\d+)$`)

// asInPod adds to args what is the default only in a Pod.
func asInPod(args []string) []string {
	return append(slices.Clone(args), "-health-probe-bind-address=:8081")
}

func startReplica(name, kubeconfig string, args []string) *replica {
	GinkgoHelper()
	r := &replica{name: name, ports: map[string]string{}, done: make(chan struct{})}
	args = asInPod(args)
	for i, arg := range args {
		if m := listens.FindStringSubmatch(arg); m != nil {
			r.ports[m[2]] = freeAddress()
			args[i] = m[1] + r.ports[m[2]]
		}
	}
	program, err := imageProgram()
	Expect(err).NotTo(HaveOccurred())
	r.cmd = exec.Command(program, args...)
	r.cmd.Env = []string{"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=" + operatorNamespace}
	r.cmd.Stdout, r.cmd.Stderr = r, r
	Expect(r.cmd.Start()).To(Succeed())
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait() // the exit code is checked
	}()
	return r
}

func freeAddress() string {
	GinkgoHelper()
	address, err := unusedAddress()
	Expect(err).NotTo(HaveOccurred())
	return address
}

// Write collects the output of the process.
func (r *replica) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.text.Write(text)
}

func (r *replica) output() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.text.String()
}

func (r *replica) says(text string) {
	GinkgoHelper()
	Eventually(r.output).WithTimeout(time.Minute).Should(ContainSubstring(text), r.name)
}

// stops sends SIGTERM and expects a clean exit.
func (r *replica) stops() {
	GinkgoHelper()
	Expect(r.cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
	Eventually(r.done).WithTimeout(time.Minute).Should(BeClosed(), r.name)
	Expect(r.cmd.ProcessState.ExitCode()).To(Equal(0), r.output())
}

// probe sends a probe as the kubelet does, and returns the status of the answer.
func (r *replica) probe(p *corev1.Probe, container corev1.Container) int {
	at, known := r.ports[portOf(p.HTTPGet.Port, container)]
	if !known {
		return 0
	}
	resp, err := http.Get("http://" + at + p.HTTPGet.Path)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// portOf returns the port of a container by name or number.
func portOf(port intstr.IntOrString, container corev1.Container) string {
	for _, p := range container.Ports {
		if p.Name == port.StrVal {
			return fmt.Sprint(p.ContainerPort)
		}
	}
	return port.String()
}

// serviceNetwork acts as kube-proxy, the endpoints controller and the cluster's network for
// the API server, which is configured to connect to Services through it, with CONNECT.
type serviceNetwork struct {
	listener net.Listener
	mu       struct {
		sync.Mutex
		admin      *client.Client
		deployment *appsv1.Deployment
		replicas   []*replica
	}
}

func newServiceNetwork(dir string) *serviceNetwork {
	GinkgoHelper()
	listener, err := net.Listen("unix", filepath.Join(dir, "network"))
	Expect(err).NotTo(HaveOccurred())
	n := &serviceNetwork{listener: listener}
	server := &http.Server{Handler: n}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	return n
}

// egress returns the API server's configuration for this proxy.
func (n *serviceNetwork) egress() string {
	return fmt.Sprintf(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %q}}}
`, n.listener.Addr().String())
}

func (n *serviceNetwork) serves(admin *client.Client, deployment *appsv1.Deployment, replicas ...*replica) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.admin, n.mu.deployment, n.mu.replicas = admin, deployment, replicas
}

// behind returns the address of a ready Pod's port behind a port of a Service.
func (n *serviceNetwork) behind(ctx context.Context, address string) (string, error) {
	n.mu.Lock()
	admin, deployment, replicas := n.mu.admin, n.mu.deployment, n.mu.replicas
	n.mu.Unlock()
	if deployment == nil {
		return "", fmt.Errorf("nothing is behind %s yet", address)
	}
	pod := deployment.Spec.Template
	container := pod.Spec.Containers[0]
	for service, err := range client.List[*corev1.Service](ctx, admin) {
		if err != nil {
			return "", err
		}
		for _, port := range service.Spec.Ports {
			if net.JoinHostPort(service.Spec.ClusterIP, fmt.Sprint(port.Port)) != address || !selects(service.Spec.Selector, pod.Labels) {
				continue
			}
			for _, r := range replicas {
				if r.probe(container.ReadinessProbe, container) == http.StatusOK {
					return r.ports[portOf(port.TargetPort, container)], nil
				}
			}
		}
	}
	return "", fmt.Errorf("no Service has the address %s and a Pod that is ready", address)
}

func selects(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

// ServeHTTP forwards one connection.
func (n *serviceNetwork) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, err := n.behind(r.Context(), r.Host)
	if err != nil {
		GinkgoWriter.Println("the API server does not reach", r.Host+":", err)
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	there, err := net.Dial("tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	fmt.Fprint(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(there, buffered); _ = there.Close() })
	both.Go(func() { _, _ = io.Copy(here, there); _ = here.Close() })
	both.Wait()
}

// pages splits YAML into documents.
func pages(text []byte) []string {
	return strings.Split(string(text), "\n---\n")
}
