// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// operated names the namespace of the program below; unset: this is not it.
const operated = "FLYBALL_TEST_OPERATED"

// TestOperator is the process to which the spec below sends a SIGTERM: an operator with one
// controller, whose Reconcile reports its start on standard output and waits for a line on
// standard input before it writes.
func TestOperator(t *testing.T) {
	namespace := os.Getenv(operated)
	if namespace == "" {
		t.Skip("a program for another test")
	}
	ctx := manager.SignalContext()
	context.AfterFunc(ctx, func() { fmt.Println("told to stop:", context.Cause(ctx)) })
	m, err := manager.New(manager.Options{
		Scheme: clientscheme.Scheme, HealthAddress: "0", MetricsAddress: "0",
		Informers: informer.Options{Namespaces: []string{namespace}},
	})
	if err != nil {
		t.Fatal(err)
	}
	maps := informer.For[*corev1.ConfigMap](m.Informers())
	input := bufio.NewScanner(os.Stdin)
	c := reconcile.For(maps, func(ctx context.Context, cm *corev1.ConfigMap) (reconcile.Result, error) {
		if cm.Name != "job" {
			return reconcile.Result{}, nil
		}
		fmt.Println("begun")
		input.Scan()
		cm = kube.Copy(cm)
		cm.Data = map[string]string{"done": input.Text()}
		return reconcile.Result{}, m.Client().Update(ctx, cm)
	}, reconcile.Options{Name: "operator", Workers: 1})
	if err := m.Add(c); err != nil {
		t.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		t.Fatal(err)
	}
	fmt.Println("stopped")
}

var _ = Describe("a SIGTERM", func() {
	It("lets a real process finish the reconcile it holds, and exit with 0", func(ctx context.Context) {
		ns := newNamespace(ctx)
		job := configMap(ns, "job", nil)
		Expect(outside.Create(ctx, job)).To(Succeed())

		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestOperator$", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), operated+"="+ns, "KUBECONFIG="+env.Kubeconfig())
		cmd.Stderr = GinkgoWriter
		in, err := cmd.StdinPipe()
		Expect(err).NotTo(HaveOccurred())
		out, err := cmd.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(cmd.Start()).To(Succeed())
		lines := bufio.NewScanner(out)
		says := func(want string) {
			GinkgoHelper()
			for lines.Scan() {
				if strings.Contains(lines.Text(), want) {
					return
				}
			}
			Fail("the process ended without saying " + want)
		}
		says("begun")
		Expect(cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
		says("told to stop: terminated")
		_, err = fmt.Fprintln(in, "in the drain")
		Expect(err).NotTo(HaveOccurred())
		says("stopped")
		Expect(cmd.Wait()).To(Succeed(), "exit status 0")

		Expect(outside.Get(ctx, kube.KeyOf(job), job)).To(Succeed())
		Expect(job.Data).To(HaveKeyWithValue("done", "in the drain"))
	})
})
