// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

var peer = flag.Bool("peer", false, "run the control plane on client-go's own informers")

func TestControlPlane(t *testing.T) {
	program := build(t, *peer)
	for _, s := range []struct {
		name  string
		start func(*testing.T) server
	}{{"real", startReal}, {"simulated", startSimulated}} {
		t.Run(s.name, func(t *testing.T) { newPlane(t, program, s.start(t)).story(t) })
	}
}

// plane is a server with kube-controller-manager and kube-scheduler, which connect to it
// through a front, and the kubelets of three nodes.
type plane struct {
	front *front
	api   kubernetes.Interface // through the front
}

func newPlane(t *testing.T, program string, s server) *plane {
	t.Helper()
	c := &plane{front: newFront(t, s)}
	c.api = kubernetes.NewForConfigOrDie(&rest.Config{Host: c.front.address, QPS: -1})
	for _, name := range []string{"a", "b", "c"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		node, err := c.api.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: quantity("64"), corev1.ResourceMemory: quantity("256Gi"), corev1.ResourcePods: quantity("500")}
		node.Status.Allocatable = node.Status.Capacity
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
		if _, err := c.api.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig := c.front.kubeconfig(t)
	// A simulated server does not enforce quotas: only their controller counts usage.
	c.run(t, program, "controller-manager", "--kubeconfig="+kubeconfig, "--resource-quota-sync-period=5s", "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=false",
		"--node-monitor-grace-period=24h", "--node-startup-grace-period=24h", "--kube-api-qps=1000", "--kube-api-burst=1000", "--min-resync-period=12h")
	c.run(t, program, "scheduler", "--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=1000")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); kubelet(ctx, c.api, "") }()
	t.Cleanup(func() { cancel(); <-done })
	return c
}

// run starts a part of the control plane, which ends with the test and must not end
// earlier. Its output is shown if the test fails.
func (c *plane) run(t *testing.T, program string, args ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "said")
	said, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		select {
		case err := <-ended:
			t.Errorf("%s has ended by itself: %v", args[0], err)
		default:
			_ = cmd.Process.Signal(syscall.SIGTERM)
			kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			<-ended
			kill.Stop()
		}
		_ = said.Close()
		text, _ := os.ReadFile(path)
		lines := strings.SplitAfter(string(text), "\n")
		if t.Failed() {
			t.Logf("%s, the last of %d lines:\n%s", args[0], len(lines), strings.Join(lines[max(0, len(lines)-60):], ""))
		}
	})
}

// story runs the chapters. Each ends when the cluster is in its desired state, which
// workloads has.
func (c *plane) story(t *testing.T) {
	w := &workloads{plane: c, image: "shop:1", replicas: 6}
	chapter := chapters(t, w.settled)
	chapter("create", w.create)
	chapter("rollout", func(t *testing.T) { w.rollOut(t, "shop:2") })
	chapter("scale", func(t *testing.T) { w.scale(t, 12) })
	chapter("scale back", func(t *testing.T) { w.scale(t, 5) })
	chapter("rollout while connections are cut", func(t *testing.T) {
		w.rollOut(t, "shop:3")
		for _, part := range []int{1, 2, 3} {
			w.reached(t, part)
			c.front.cut()
		}
	})
	chapter("rollout, kill -9 and compaction", func(t *testing.T) {
		w.rollOut(t, "shop:4")
		w.reached(t, 2)
		c.front.restart(t)
	})
	chapter("scale while the server is away", func(t *testing.T) {
		w.scale(t, 7)
		c.front.restart(t)
	})
	chapter("rollout whose ReplicaSets cannot be scaled, kill -9 and compaction", func(t *testing.T) {
		c.front.refuse(scales)
		w.rollOut(t, "shop:5")
		// Controllers that swallow such a refusal continue when the objects arrive again.
		NewWithT(t).Eventually(c.front.refusals).WithTimeout(long).Should(BeNumerically(">=", 3*deployments))
		c.front.refuse(nil)
		c.front.restart(t)
	})
	chapter("delete one of each, which takes what it owns", w.deleteSome)
	chapter("delete the namespace", w.deleteAll)
}
