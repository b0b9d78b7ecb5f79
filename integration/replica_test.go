// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// Environment variables from the spec to the program below.
const (
	replicaName      = "FLYBALL_TEST_REPLICA" // unset: this process is no replica
	replicaNamespace = "FLYBALL_TEST_REPLICA_NAMESPACE"
	replicaLease     = "FLYBALL_TEST_REPLICA_LEASE"  // its duration
	replicaRetry     = "FLYBALL_TEST_REPLICA_RETRY"  // its retry period; unset: the default
	replicaDeaf      = "FLYBALL_TEST_REPLICA_DEAF"   // set: a runnable ignores its context
	replicaShards    = "FLYBALL_TEST_REPLICA_SHARDS" // into which replicas divide the ConfigMaps; unset: one leads
)

// seenBy is the annotation by which a replica records that it has reconciled an object.
const seenBy = "integration.flyball.dev/seen-by"

// seenValue is the annotation with the value that it has seen.
const seenValue = "integration.flyball.dev/seen-value"

// TestReplica is a process of an operator with leader election. While it leads it writes
// continuously, with a client made from the manager's configuration, and annotates each
// ConfigMap that its informer has.
func TestReplica(t *testing.T) {
	name, namespace := os.Getenv(replicaName), os.Getenv(replicaNamespace)
	if name == "" {
		t.Skip("a program for another test")
	}
	election := manager.LeaderElection{ID: "replicas", Namespace: namespace}
	for name, d := range map[string]*time.Duration{replicaLease: &election.LeaseDuration, replicaRetry: &election.RetryPeriod} {
		if text := os.Getenv(name); text != "" {
			var err error
			if *d, err = time.ParseDuration(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	var sharding *manager.Sharding
	if text := os.Getenv(replicaShards); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		sharding, election.Identity = &manager.Sharding{Shards: n}, name
	}
	cfg, err := manager.FindConfig("", "")
	if err != nil {
		t.Fatal(err)
	}
	cfg.UserAgent = name
	m, err := manager.New(manager.Options{
		Config: cfg, Scheme: clientscheme.Scheme, HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0",
		Informers: informer.Options{Namespaces: []string{namespace}}, LeaderElection: &election, Sharding: sharding,
	})
	if err != nil {
		t.Fatal(err)
	}
	maps := kubernetes.NewForConfigOrDie(m.Config()).CoreV1().ConfigMaps(namespace)
	write := func(ctx context.Context, name, patch string) (reconcile.Result, error) {
		_, err := maps.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return reconcile.Result{}, err
	}
	c := reconcile.New("writer", func(ctx context.Context, key string) (reconcile.Result, error) {
		return write(ctx, key, fmt.Sprintf(`{"data":{"by":%q,"at":%q}}`, name, time.Now().Format(time.RFC3339Nano)))
	}, reconcile.KeyedOptions[string]{Workers: 2})
	c.Watch(source.Ticker(20*time.Millisecond, func() iter.Seq[string] { return slices.Values([]string{"a", "b"}) }, source.TickerOptions{}))
	shown := informer.For[*corev1.ConfigMap](m.Informers())
	signer := reconcile.For(shown, func(ctx context.Context, cm *corev1.ConfigMap) (reconcile.Result, error) {
		if cm.Annotations[seenBy] == name && cm.Annotations[seenValue] == cm.Data["value"] {
			return reconcile.Result{}, nil
		}
		return write(ctx, cm.Name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q}}}`, seenBy, name, seenValue, cm.Data["value"]))
	}, reconcile.Options{Name: "signer"})
	guarded := []manager.Runnable{c, signer}
	if sharding != nil {
		guarded = []manager.Runnable{signer}
	}
	if os.Getenv(replicaDeaf) != "" {
		guarded = append(guarded, manager.RunnableFunc(func(context.Context) error { select {} }))
	}
	err = m.AddTo(manager.StageStandby, manager.RunnableFunc(func(ctx context.Context) error {
		fmt.Printf("serves %s and %s.\n", m.HealthAddr(), m.MetricsAddr())
		<-ctx.Done()
		return nil
	}))
	for _, r := range guarded {
		err = errors.Join(err, m.Add(r))
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx := manager.SignalContext()
	context.AfterFunc(ctx, func() { fmt.Println("told to stop") })
	fmt.Println("starts")
	go func() {
		<-m.Elected()
		fmt.Println("leads")
	}()
	if err := m.Run(ctx); err != nil {
		fmt.Println("ended with:", err)
		os.Exit(3)
	}
	fmt.Println("stopped")
}

// replicaProcess is a process of TestReplica.
type replicaProcess struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	mu   struct {
		sync.Mutex
		text bytes.Buffer
	}
}

// Write collects the output of the process.
func (p *replicaProcess) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.text.Write(text)
}

func (p *replicaProcess) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.text.String()
}

func startReplica(server *envtest.Environment, name string, environ ...string) *replicaProcess {
	GinkgoHelper()
	most := "5m" // if the spec's process is killed
	if os.Getenv(sharedObjects) != "" {
		most = "30m"
	}
	p := &replicaProcess{name: name, cmd: exec.Command(os.Args[0], "-test.run=^TestReplica$", "-test.timeout="+most), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), append(environ, replicaName+"="+name, "KUBECONFIG="+server.Kubeconfig())...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	Expect(p.cmd.Start()).To(Succeed())
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the exit code is checked
	}()
	DeferCleanup(func() {
		_ = p.cmd.Process.Kill() // usually it has ended
		<-p.done
		if CurrentSpecReport().Failed() {
			GinkgoWriter.Printf("---- %s\n%s\n", name, p.output())
		}
	})
	return p
}

func (p *replicaProcess) says(text string) {
	GinkgoHelper()
	Eventually(p.output).WithTimeout(2*time.Minute).Should(ContainSubstring(text), p.name)
}

func (p *replicaProcess) signal(s os.Signal) {
	GinkgoHelper()
	Expect(p.cmd.Process.Signal(s)).To(Succeed())
}

// ends waits for the end and returns the exit code.
func (p *replicaProcess) ends() int {
	GinkgoHelper()
	Eventually(p.done).WithTimeout(time.Minute).Should(BeClosed(), p.name)
	return p.cmd.ProcessState.ExitCode()
}

func (p *replicaProcess) said(text string) bool { return strings.Contains(p.output(), text) }

// served matches the addresses of a replica.
var served = regexp.MustCompile(`serves (\S+) and (\S+)\.`)

// asks returns the answer of the process at path of its probes, or of its metrics.
func (p *replicaProcess) asks(path string) string {
	at := served.FindStringSubmatch(p.output())
	if at == nil {
		return "it does not serve yet"
	}
	address := at[1]
	if path == "/metrics" {
		address = at[2]
	}
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(text), err)
}

// waiting returns the number of keys that wait for a controller of the process; -1: the
// metric is absent.
func (p *replicaProcess) waiting(controller string) int {
	found := regexp.MustCompile(`(?m)^workqueue_depth\{controller="`+controller+`".*\} (\d+)$`).FindAllStringSubmatch(p.asks("/metrics"), -1)
	if found == nil {
		return -1
	}
	sum := 0
	for _, m := range found {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return -1
		}
		sum += n
	}
	return sum
}
