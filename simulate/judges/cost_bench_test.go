// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package judges_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate"
)

const (
	costServes = "FLYBALL_COST_KUBECONFIG" // set: this process is the simulated server, and writes its kubeconfig there
	costPods   = "FLYBALL_COST_PODS"       // how many Pods; 50,000

	costReady = "the kubeconfig is written"

	costReads    = 1000 // Pods that are read one by one
	costWatches  = 20
	costChanges  = 500 // that each watch is sent
	costPageSize = 500
)

// BenchmarkCost compares what the simulated server and a real one cost: processor time of the server's processes, a
// kube-apiserver and its etcd together, and the most memory that they had until then. Both are served by the same client.
func BenchmarkCost(b *testing.B) {
	b.Run("simulated", func(b *testing.B) {
		config, pid := simulatedProcess(b)
		costOf(b, config, pid)
	})
	b.Run("real", func(b *testing.B) {
		env, err := envtest.Start(b.Context(), envtest.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = env.Stop() })
		costOf(b, env.Config(), descendants("kube-apiserver", "etcd")...)
	})
}

// simulatedProcess is a simulated server in a process of its own.
func simulatedProcess(b *testing.B) (*rest.Config, int) {
	file := filepath.Join(b.TempDir(), "kubeconfig")
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestCostServes$")
	cmd.Env = append(os.Environ(), costServes+"="+file)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() != costReady {
			continue
		}
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			b.Fatal(err)
		}
		return config, cmd.Process.Pid
	}
	b.Fatal("the simulated server did not start")
	return nil, 0
}

// TestCostServes is the simulated server of BenchmarkCost, not a test.
func TestCostServes(t *testing.T) {
	file := os.Getenv(costServes)
	if file == "" {
		t.Skip("runs in a child process of BenchmarkCost")
	}
	l, err := simulate.Listen(simulate.ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	fmt.Println(costReady)
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	if err := l.Run(ctx); err != nil {
		t.Error(err)
	}
}

// descendants are the processes with these names that this one has started, at however many removes.
func descendants(names ...string) (pids []int) {
	parents := map[int]int{}
	called := map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range dirs {
		text, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
		if open < 0 || end < 0 {
			continue // it has ended meanwhile
		}
		called[pid] = string(text[open+1 : end])
		parents[pid], _ = strconv.Atoi(strings.Fields(string(text[end+1:]))[1])
	}
	for pid, name := range called {
		for _, wanted := range names {
			for p := pid; name == wanted && p > 1; p = parents[p] {
				if p == os.Getpid() {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids
}

// spent is the processor time of processes so far, in seconds. The unit of /proc is a hundredth of one.
func spent(b *testing.B, pids []int) (seconds float64) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			b.Fatal(err)
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, _ := strconv.ParseFloat(field, 64)
			seconds += ticks / 100
		}
	}
	return seconds
}

// peak is the most memory that processes have had, in MB, one beside the other.
func peak(b *testing.B, pids []int) (megabytes float64) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			b.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "VmHWM:")
		kilobytes, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		megabytes += kilobytes / 1000
	}
	return megabytes
}

// costOf measures each row against a server whose processes are pids.
func costOf(b *testing.B, config *rest.Config, pids ...int) {
	if len(pids) == 0 {
		b.Fatal("the server's process was not found")
	}
	count := 50_000
	if text := os.Getenv(costPods); text != "" {
		count, _ = strconv.Atoi(text)
	}
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		b.Fatal(err)
	}
	c := &costClient{Client: client, b: b, host: config.Host, pods: count}
	for range b.N {
		for _, row := range []struct {
			name  string
			items int
			run   func()
		}{
			{"create", count, c.createAll},
			{"status", count, c.statusAll},
			{"get", costReads, c.getSome},
			{"list-json", count, func() { c.read("?", inJSON) }},
			{"list-protobuf", count, func() { c.read("?", protobuf) }},
			{"list-again", count, func() { c.read("?", protobuf) }},
			{"pages", count, c.readPages},
			{"stream", count, c.stream},
			{"watch", costWatches * costChanges, c.watchAll},
			{"delete", count, c.deleteAll},
		} {
			before, begin := spent(b, pids), time.Now()
			row.run()
			used := spent(b, pids) - before
			b.ReportMetric(used*1e6/float64(row.items), row.name+"-µs")
			b.Logf("%-14s %8.2f s %8.1f µs each %7.0f MB peak, in %v", row.name, used, used*1e6/float64(row.items), peak(b, pids), time.Since(begin).Round(time.Millisecond))
		}
	}
	b.ReportMetric(peak(b, pids), "peak-MB")
	b.ReportMetric(0, "ns/op")
}

const (
	inJSON   = "application/json"
	protobuf = "application/vnd.kubernetes.protobuf"
)

// costClient sends requests and throws the answers away, so that most of the processors' time is the server's.
type costClient struct {
	*http.Client
	b    *testing.B
	host string
	pods int
}

const costPath = "/api/v1/namespaces/default/pods"

func (c *costClient) do(method, path, contentType, accept string, body []byte) *http.Response {
	req, err := http.NewRequestWithContext(c.b.Context(), method, c.host+path, bytes.NewReader(body))
	if err != nil {
		c.b.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", "kubelet/v1.37.0")
	answer, err := c.Do(req)
	if err != nil {
		c.b.Fatal(err)
	}
	if answer.StatusCode >= 300 {
		text, _ := io.ReadAll(answer.Body)
		c.b.Fatalf("%s %s: %s %s", method, path, answer.Status, text)
	}
	return answer
}

func (c *costClient) drop(answer *http.Response) {
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		c.b.Fatal(err)
	}
	_ = answer.Body.Close()
}

// each calls f for the numbers up to n, in four goroutines.
func (c *costClient) each(n int, f func(i int)) {
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := g; i < n; i += 4 {
				f(i)
			}
		})
	}
	group.Wait()
}

func (c *costClient) createAll() {
	c.each(c.pods, func(i int) { c.drop(c.do("POST", costPath, inJSON, protobuf, costPod(i))) })
}

func (c *costClient) statusAll() {
	c.each(c.pods, func(i int) {
		path := fmt.Sprintf("%s/p%06d/status", costPath, i)
		c.drop(c.do("PATCH", path, "application/strategic-merge-patch+json", protobuf, costStatus(i)))
	})
}

func (c *costClient) getSome() {
	c.each(costReads, func(i int) {
		c.drop(c.do("GET", fmt.Sprintf("%s/p%06d", costPath, i*7919%c.pods), "", protobuf, nil))
	})
}

func (c *costClient) read(query, accept string) { c.drop(c.do("GET", costPath+query, "", accept, nil)) }

// readPages reads pages of JSON, as what a page says of the next can be read there without a decoder.
func (c *costClient) readPages() {
	next := ""
	for {
		answer := c.do("GET", fmt.Sprintf("%s?limit=%d&continue=%s", costPath, costPageSize, next), "", inJSON, nil)
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
		}
		if err := json.NewDecoder(answer.Body).Decode(&page); err != nil {
			c.b.Fatal(err)
		}
		_ = answer.Body.Close()
		if next = page.Metadata.Continue; next == "" {
			return
		}
	}
}

// stream reads a streaming list until its last bookmark.
func (c *costClient) stream() {
	answer := c.do("GET", costPath+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=600", "", inJSON, nil)
	defer func() { _ = answer.Body.Close() }()
	c.until(answer.Body, []byte("k8s.io/initial-events-end"), 1)
}

// until reads lines until so many have had a mark in them.
func (c *costClient) until(stream io.Reader, mark []byte, times int) {
	buffer := make([]byte, 0, 256<<10)
	for {
		n, err := stream.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		times -= bytes.Count(buffer, mark)
		if times <= 0 {
			return
		}
		if err != nil {
			c.b.Error("a watch ended early: ", err)
			return
		}
		keep := min(len(buffer), len(mark)-1) // a mark may be cut
		buffer = append(buffer[:0], buffer[len(buffer)-keep:]...)
	}
}

// watchAll changes Pods while others watch all of them.
func (c *costClient) watchAll() {
	list := c.do("GET", costPath+"?limit=1", "", inJSON, nil)
	var page struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.NewDecoder(list.Body).Decode(&page); err != nil {
		c.b.Fatal(err)
	}
	_ = list.Body.Close()
	var watching sync.WaitGroup
	for range costWatches {
		answer := c.do("GET", costPath+"?watch=true&timeoutSeconds=600&resourceVersion="+page.Metadata.ResourceVersion, "", inJSON, nil)
		watching.Go(func() {
			defer func() { _ = answer.Body.Close() }()
			c.until(answer.Body, []byte(`{"type":"MODIFIED"`), costChanges)
		})
	}
	c.each(costChanges, func(i int) {
		path := fmt.Sprintf("%s/p%06d", costPath, i%c.pods)
		c.drop(c.do("PATCH", path, "application/merge-patch+json", protobuf, fmt.Appendf(nil, `{"metadata":{"annotations":{"changed":"%d"}}}`, i)))
	})
	watching.Wait()
}

func (c *costClient) deleteAll() {
	c.drop(c.do("DELETE", costPath+"?gracePeriodSeconds=0", "", inJSON, nil))
}
