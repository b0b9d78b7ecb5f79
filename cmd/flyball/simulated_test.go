// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// simulated is an operator on its simulated cluster.
type simulated struct {
	*exec.Cmd
	log       *bufio.Scanner
	read      bytes.Buffer // of the log
	databases dynamic.ResourceInterface
}

// startSimulated runs a program until it has printed how to reach its cluster.
func startSimulated(t *testing.T, program, home string, args ...string) *simulated {
	t.Helper()
	s := &simulated{
		Cmd: exec.CommandContext(t.Context(), program, append([]string{"-simulate"}, args...)...),
	}
	s.Env = append(os.Environ(), "KUBECONFIG=/is/not/there", "HOME="+home)
	problems, err := s.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.log = bufio.NewScanner(io.TeeReader(problems, &s.read))
	output, err := s.StdoutPipe()
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := ""
	for lines := bufio.NewScanner(output); kubeconfig == "" && lines.Scan(); {
		_, kubeconfig, _ = strings.Cut(lines.Text(), "export KUBECONFIG=")
	}
	kubeconfig = strings.ReplaceAll(strings.Trim(kubeconfig, "'"), `'\''`, "'") // quoted for a shell
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		s.until(t, "the end")
		t.Fatalf("the operator prints no export KUBECONFIG= of a kubeconfig: %v", err)
	}
	clients, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.databases = clients.Resource(
		schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "databases"},
	).Namespace("default")
	return s
}

// until reads the log up to a line with text, and returns the line.
func (s *simulated) until(t *testing.T, text string) string {
	t.Helper()
	for s.log.Scan() {
		if strings.Contains(s.log.Text(), text) {
			return s.log.Text()
		}
	}
	t.Fatalf("the log has no %q:\n%s", text, &s.read)
	return ""
}

func (s *simulated) stop(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		_ = s.Process.Kill()
	} else {
		_ = s.Process.Signal(os.Interrupt)
	}
	for s.log.Scan() { // to the end
	}
	if err := s.Wait(); err != nil && runtime.GOOS != "windows" {
		t.Errorf("after an interrupt: %v\n%s", err, &s.read)
	}
}

// freeAddress returns one that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func database(name, image string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Database",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"image": image},
	}}
}

// simulate runs an operator without a cluster: its webhooks are called, each reconcile is logged,
// metrics are served where the log says, and the objects outlive it.
func simulate(t *testing.T, dir string) {
	t.Helper()
	program, data, home := filepath.Join(t.TempDir(), "operator.exe"), t.TempDir(), t.TempDir()
	goIn(t, dir, "build", "-o", program, ".")

	s := startSimulated(
		t, program, home, "-webhooks", "-webhook-bind-address", freeAddress(t), "-data", data,
	)
	address := regexp.MustCompile(
		` metrics=(127\.0\.0\.1:[0-9]+) health=127\.0\.0\.1:[0-9]+`,
	).FindStringSubmatch(s.until(t, "Started the manager"))
	if address == nil {
		t.Fatalf("the log has no addresses of metrics and health:\n%s", &s.read)
	}
	if answer, err := http.Get("http://" + address[1] + "/metrics"); err != nil ||
		answer.StatusCode != http.StatusOK {
		t.Errorf("metrics at %s: %v, %v", address[1], answer, err)
	} else {
		_ = answer.Body.Close()
	}
	s.until(t, "Updated the CA bundle")
	if _, err := s.databases.Create(
		t.Context(), database("bad", "a b"), metav1.CreateOptions{},
	); !apierrors.IsInvalid(err) {
		t.Errorf("an image that the webhook denies: %v, want Invalid", err)
	}
	made, err := s.databases.Create(t.Context(), database("sample", "nginx"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if line := s.until(t, "Reconcile done"); !strings.Contains(line, "key=default/sample") {
		t.Errorf("the log has %q, want the key of what was reconciled", line)
	}
	s.stop(t)

	s = startSimulated(t, program, home, "-metrics-bind-address", "0", "-data", data)
	if line := s.until(t, "Started the manager"); strings.Contains(line, "metrics=") ||
		!strings.Contains(line, "health=") {
		t.Errorf("with -metrics-bind-address 0 the log has %q, want health alone", line)
	}
	if now, err := s.databases.Get(t.Context(), "sample", metav1.GetOptions{}); err != nil ||
		now.GetUID() != made.GetUID() {
		t.Errorf("after another start there is %v, %v; want the Database of the first", now, err)
	}
	if _, err := s.databases.Create(
		t.Context(), database("other", "a b"), metav1.CreateOptions{},
	); err != nil {
		t.Errorf("without -webhooks: %v, want no webhook to be called", err)
	}
	s.stop(t)

	out, err := exec.CommandContext(t.Context(), program, "simulate").CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 2 ||
		!strings.Contains(string(out), "do you mean -simulate?") {
		t.Errorf("operator simulate: %v, want the exit code 2 and the flag:\n%s", err, out)
	}
}
