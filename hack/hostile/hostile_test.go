// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/testing/hostile"
)

var lasting = flag.Duration("hostile.for", 5*time.Second, "how long the operator is attacked")

// mostMemory bounds the operator's peak memory in bytes: the budgets of webhooks and of
// answers, garbage of both that has not been collected, and the operator itself. Two
// minutes of all floods took 724 MiB on two busy cores, a few seconds 334 MiB.
const mostMemory = 1 << 30

// fewest is the minimum number of requests of each flood, however short it is.
const fewest = 8

// victim is the operator's process.
type victim struct {
	cmd      *exec.Cmd
	webhooks string
	lines    chan string
}

func TestHostile_OperatorStandsAllFloods(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), *lasting+8*time.Minute)
	defer cancel()
	env, err := envtest.Start(ctx, envtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	p := newProxy(t, env.Config())
	v := start(ctx, t, p.URL)
	api, err := kubernetes.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	v.follows(ctx, t, api, "before")

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // the test is about bodies
	attack, end := context.WithTimeout(ctx, *lasting)
	defer end()
	codes := &counts{}
	var floods sync.WaitGroup
	bombs := hostile.Values(3<<20 - 1<<10)
	for name, body := range map[string]func(i int) string{
		"bombs":  func(i int) string { return bombOf(bombs, i) },
		"panics": func(int) string { return review(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"panic"}}`) },
		"garbage": func(i int) string {
			all := hostile.Garbage()
			return string(all[i%len(all)].Text)
		},
	} {
		floods.Go(func() {
			for i := 0; i < fewest || attack.Err() == nil && ctx.Err() == nil; i++ {
				codes.add(name, ask(ctx, client, v.webhooks, []string{"/validate", "/mutate"}[i/64%2], body(i)))
			}
		})
	}
	v.follows(ctx, t, api, "during")
	floods.Wait()
	// Answers to the last bombs may be outstanding; the honest review waits for its turn.
	if code := ask(ctx, client, v.webhooks, "/validate", review(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"honest"}}`)); code != http.StatusOK {
		t.Errorf("an honest review after the floods is answered with %d", code)
	}
	v.follows(ctx, t, api, "after")
	t.Logf("webhook answers %v; %d gzip bombs, %d times 429, %d garbage lines", codes.all, p.bombs.Load(), p.busy.Load(), p.garbage.Load())
	if p.bombs.Load() == 0 || p.busy.Load() == 0 {
		t.Errorf("%d bombs and %d times 429 were sent: a flood did not arrive", p.bombs.Load(), p.busy.Load())
	}
	if codes.of("bombs", http.StatusRequestEntityTooLarge) == 0 || codes.of("panics", http.StatusInternalServerError) == 0 || p.garbage.Load() == 0 {
		t.Errorf("answers %v, %d garbage lines: a flood did not arrive", codes.all, p.garbage.Load())
	}
	if peak, known := v.peak(); !known {
		t.Log("the peak of the memory is not known on this system")
	} else if t.Logf("peak memory: %d MiB", peak>>20); peak > mostMemory {
		t.Errorf("the operator took %d MiB, want at most %d", peak>>20, mostMemory>>20)
	}
}

// start builds the operator and runs it against the server at url. It builds without the
// race detector, whose shadow memory would count.
func start(ctx context.Context, t *testing.T, url string) *victim {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "operator")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./operator").CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, out)
	}
	ca, err := keypair.NewAuthority(time.Now(), "hostile")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Server(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	v := &victim{webhooks: address, lines: make(chan string, 1<<16)}
	v.cmd = exec.CommandContext(ctx, binary, "-server", url, "-webhooks", address, "-certificates", dir)
	v.cmd.Env = append(os.Environ(), "GOMEMLIMIT=off", "GOGC=100")
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(v.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case v.lines <- lines.Text():
			default: // readers want the newest
			}
		}
	})
	t.Cleanup(func() {
		_ = v.cmd.Process.Signal(os.Interrupt)
		_ = v.cmd.Wait()
		reading.Wait()
	})
	return v
}

// follows creates a ConfigMap, changes it, and waits until the operator has seen the
// change.
func (v *victim) follows(ctx context.Context, t *testing.T, api kubernetes.Interface, name string) {
	t.Helper()
	maps := api.CoreV1().ConfigMaps("default")
	object, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"v": "1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object.Data["v"] = "2"
	if _, err := maps.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	late := time.After(3 * time.Minute)
	for {
		select {
		case line, open := <-v.lines:
			if line == "seen "+name+" 2" {
				return
			}
			if !open {
				t.Fatalf("%s: the operator has ended", name)
			}
		case <-late:
			t.Fatalf("%s: the operator does not see the object", name)
		}
	}
}

// peak returns the peak memory of the process.
func (v *victim) peak() (bytes int64, known bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.cmd.Process.Pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if rest, is := strings.CutPrefix(line, "VmHWM:"); is {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}

func review(object string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"42","kind":{"group":"","version":"v1","kind":"Pod"},` +
		`"operation":"CREATE","namespace":"default","name":"one","object":` + object + `}}`
}

// bombOf returns a review with an input of the corpus, as large as a body may be.
func bombOf(all []hostile.Input, i int) string {
	paths := []string{"spec.containers", "metadata.annotations", "spec"}
	value := string(all[i%len(all)].Text)
	if paths[i/len(all)%len(paths)] != "spec" {
		first, second, _ := strings.Cut(paths[i/len(all)%len(paths)], ".")
		return review(fmt.Sprintf(`{"kind":"Pod",%q:{%q:%s}}`, first, second, value))
	}
	return review(`{"kind":"Pod","spec":` + value + `}`)
}

// ask sends a body and returns the status of the answer; 0 without an answer.
func ask(ctx context.Context, client *http.Client, address, path, body string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+path+"?timeout=30s", strings.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// counts counts answers by flood and status.
type counts struct {
	mu  sync.Mutex
	all map[string]map[int]int
}

func (c *counts) add(flood string, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]map[int]int{}
	}
	if c.all[flood] == nil {
		c.all[flood] = map[int]int{}
	}
	c.all[flood][code]++
}

func (c *counts) of(flood string, code int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[flood][code]
}
