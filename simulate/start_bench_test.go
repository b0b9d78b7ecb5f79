// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/simulate"
)

// asFirst is set where a benchmark has started its own binary, to that of firsts
// which it is to do.
const asFirst = "SIMULATE_FIRST"

func TestMain(m *testing.M) {
	for _, c := range firsts {
		if os.Getenv(asFirst) == c.name {
			if err := c.do(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// firsts are what a process may want of a server first.
var firsts = []struct {
	name string
	do   func(context.Context) error
}{
	{"nothing", func(context.Context) error { return nil }},
	{"a list in process", func(context.Context) error {
		if answer := directly(simulate.New(simulate.Options{}), http.MethodGet, "/api/v1/namespaces/default/configmaps", "", ""); answer.Code != http.StatusOK {
			return fmt.Errorf("got %d", answer.Code)
		}
		return nil
	}},
	{"a list over loopback", func(ctx context.Context) error {
		return onLoopback(ctx, func(c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
			return err
		})
	}},
	{"a create over loopback", func(ctx context.Context) error {
		return onLoopback(ctx, func(c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
			return err
		})
	}},
}

// onLoopback calls do with a client of a server of its own.
func onLoopback(ctx context.Context, do func(kubernetes.Interface) error) error {
	l, err := simulate.Listen(simulate.ListenOptions{Logger: logr.Discard()})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	defer func() {
		stop()
		<-ended
	}()
	c, err := kubernetes.NewForConfig(l.Config())
	if err != nil {
		return err
	}
	return do(c)
}

// BenchmarkServer_StartProcess is a process from its start to its end, which
// makes a server and has one answer of it. What the process takes to do nothing,
// as Go reads in the packages that are linked, is in every other figure.
func BenchmarkServer_StartProcess(b *testing.B) {
	for _, c := range firsts {
		b.Run(c.name, func(b *testing.B) {
			least, worked := time.Hour, time.Duration(0)
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), asFirst+"="+c.name)
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				least, worked = min(least, used), worked+used
			}
			b.ReportMetric(float64(least.Microseconds())/1000, "least-cpu-ms")
			b.ReportMetric(float64(worked.Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
