// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/envtest"
)

const (
	costPods = "FLYBALL_COST_PODS" // number of Pods; 50,000

	costSome     = 4000 // Pods whose status is patched, and Pods that are deleted, at most
	costReads    = 1000 // Pods that are read one by one
	costWatches  = 20
	costChanges  = 500 // events that each watch receives
	costPageSize = 500

	costTries = 20 // of a request that fails or whose connection breaks
)

// BenchmarkCost compares the cost of the simulated server and of a real one: processor time
// of the server's processes (a kube-apiserver and its etcd together), and their peak memory
// so far. The same client sends the same requests to both in turn. Rows that only read are
// measured three times; the median counts.
func BenchmarkCost(b *testing.B) {
	config, pid := simulatedProcess(b)
	env, err := envtest.Start(b.Context(), envtest.Options{
		// On a busy machine a list of all Pods takes longer than the default request
		// timeout. etcd's limit for a write is seven seconds: five plus two election
		// timeouts.
		APIServerArgs: map[string][]string{"request-timeout": {"30m"}},
		EtcdArgs: map[string][]string{
			"quota-backend-bytes": {"8589934592"},
			"heartbeat-interval":  {"1000"},
			"election-timeout":    {"20000"},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = env.Stop() })
	simulated := newCostClient(b, config, pid)
	real := newCostClient(b, env.Config(), descendants("kube-apiserver", "etcd")...)
	for range b.N {
		for _, row := range simulated.rows() {
			var ours, theirs []float64
			for range max(1, row.times) {
				ours = append(ours, simulated.measure(row))
				theirs = append(theirs, real.measure(row))
			}
			if b.Failed() {
				b.FailNow() // a goroutine of the row has failed
			}
			mine, its := median(ours), median(theirs)
			b.ReportMetric(mine/its, row.name+"-ratio")
			// Print at once, so an interrupted run leaves its rows.
			fmt.Fprintf(os.Stderr, "%-20s simulated %8.1f µs each %6.0f MB peak; real %8.1f µs %6.0f MB; ratio %.2f; each time %.0f and %.0f\n", row.name,
				mine, simulated.peak(), its, real.peak(), mine/its, ours, theirs)
		}
	}
	b.ReportMetric(simulated.peak()/real.peak(), "memory-ratio")
	b.ReportMetric(0, "ns/op")
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// costRow is one kind of work.
type costRow struct {
	name  string
	items int
	times int // 0: once
	run   func(c *costClient)
}

func (c *costClient) rows() []costRow {
	return []costRow{
		{"create", c.pods, 0, (*costClient).createAll},
		{"status", c.some(), 0, (*costClient).statusOfSome},
		{"list-protobuf-first", c.pods, 0, func(c *costClient) { c.read("?", protobuf) }},
		{"get", costReads, 3, (*costClient).getSome},
		{"list-json", c.pods, 3, func(c *costClient) { c.read("?", inJSON) }},
		{"list-protobuf", c.pods, 3, func(c *costClient) { c.read("?", protobuf) }},
		{"pages", c.pods, 3, (*costClient).readPages},
		{"stream", c.pods, 3, (*costClient).stream},
		{"watch", costWatches * costChanges, 0, (*costClient).watchAll},
		{"delete", c.some(), 0, (*costClient).deleteSome},
	}
}

// measure returns the cost per item of a row, in microseconds.
func (c *costClient) measure(row costRow) float64 {
	before := c.spent()
	row.run(c)
	return (c.spent() - before) * 1e6 / float64(row.items)
}

const (
	inJSON   = "application/json"
	protobuf = "application/vnd.kubernetes.protobuf"
)

// costClient sends requests and discards the answers, so most of the processor time is the
// server's.
type costClient struct {
	*http.Client
	b    *testing.B
	host string
	pids []int // of the server's processes
	pods int
}

func newCostClient(b *testing.B, config *rest.Config, pids ...int) *costClient {
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
	return &costClient{Client: client, b: b, host: config.Host, pids: pids, pods: count}
}

// some returns how many Pods get a status, and how many are deleted: those of whole
// services.
func (c *costClient) some() int {
	services := min(1000, c.pods)
	return min(c.pods, costSome/(c.pods/services)*(c.pods/services))
}

const costPath = "/api/v1/namespaces/default/pods"

// do retries requests that the server cannot serve, as with a slow etcd: without a retry, a
// goroutine would leave its share of the row undone.
func (c *costClient) do(method, path, contentType, accept string, body []byte) *http.Response {
	for again := 0; ; again++ {
		answer, err := c.request(method, path, contentType, accept, body)
		if err != nil && again < costTries {
			continue
		}
		if err != nil {
			c.b.Fatal(err)
		}
		if answer.StatusCode < 300 || again > 0 && answer.StatusCode == http.StatusConflict {
			return answer // a conflict: the first try did create the Pod
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if again == costTries || answer.StatusCode < 500 {
			c.b.Fatalf("%s %s: %s %s", method, path, answer.Status, text)
		}
	}
}

func (c *costClient) request(method, path, contentType, accept string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(c.b.Context(), method, c.host+path, bytes.NewReader(body))
	if err != nil {
		c.b.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", "kubelet/v1.37.0")
	return c.Do(req)
}

func (c *costClient) drop(answer *http.Response) {
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		c.b.Fatal(err)
	}
	_ = answer.Body.Close()
}

// each calls f for the numbers up to n from four goroutines.
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
	c.each(c.pods, func(i int) { c.drop(c.do("POST", costPath, inJSON, inJSON, costPod(i))) })
}

func (c *costClient) statusOfSome() {
	c.each(c.some(), func(i int) {
		path := fmt.Sprintf("%s/p%06d/status", costPath, i)
		c.drop(c.do("PATCH", path, "application/strategic-merge-patch+json", inJSON, costStatus(i)))
	})
}

func (c *costClient) getSome() {
	c.each(costReads, func(i int) {
		c.drop(c.do("GET", fmt.Sprintf("%s/p%06d", costPath, i*7919%c.pods), "", protobuf, nil))
	})
}

func (c *costClient) read(query, accept string) { c.drop(c.do("GET", costPath+query, "", accept, nil)) }

// readPages reads pages of JSON, because their continue token can be found without a
// decoder.
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

// until reads lines until this many contain mark.
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
		keep := min(len(buffer), len(mark)-1) // a mark may be split
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

// deleteSome deletes the Pods of some services as a collection. A real server may need
// longer than its request timeout: it then reports that or cuts the answer, and deleteSome
// retries.
func (c *costClient) deleteSome() {
	path := costPath + "?gracePeriodSeconds=0"
	if services := min(1000, c.pods); c.some() < c.pods {
		var names []string
		for i := range c.some() / (c.pods / services) {
			names = append(names, fmt.Sprintf("service-%d", i))
		}
		path += "&labelSelector=" + url.QueryEscape("app.kubernetes.io/name in ("+strings.Join(names, ",")+")")
	}
	var problem error
	for range costTries {
		answer, err := c.request("DELETE", path, "", inJSON, nil)
		if err != nil {
			problem = err
			continue
		}
		_, problem = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if problem == nil && answer.StatusCode == http.StatusOK {
			return
		}
		problem = fmt.Errorf("delete the Pods: %s: %v", answer.Status, problem)
	}
	c.b.Fatal(problem)
}
