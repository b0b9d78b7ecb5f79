// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/manager"
)

var user *kubernetes.Clientset

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	env, err := envtest.Start(ctx, envtest.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	user = kubernetes.NewForConfigOrDie(env.Config())
	mgr, err := manager.New(manager.Options{Config: env.Config(), MetricsAddress: "0", HealthAddress: "0"})
	if err == nil {
		err = setUp(os.Getenv("TICKETS_RANDOM") != "")(mgr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	code := m.Run()
	stop()
	<-ended
	return code
}

// Each order gets one ticket.
func TestTickets(t *testing.T) {
	for _, name := range []string{"tea", "coffee"} {
		t.Run(name, func(t *testing.T) {
			orders, label := user.CoreV1().ConfigMaps("default"), map[string]string{orderLabel: name}
			if _, err := orders.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: label}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			for until := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				order, err := orders.Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if order.Annotations[ticketNote] != "" {
					break
				}
				if time.Now().After(until) {
					t.Fatal("the order has no ticket")
				}
			}
			made, err := user.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{LabelSelector: orderLabel + "=" + name})
			if err != nil || len(made.Items) != 1 {
				t.Errorf("the order has %d tickets (%v), want one", len(made.Items), err)
			}
		})
	}
}
