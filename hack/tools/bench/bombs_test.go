// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/testing/hostile"
)

const (
	// mostRSS ends a process that a bomb has hit, so that the machine survives it. Its
	// figure is then a lower bound.
	mostRSS = 6 << 30
	// answersWithin bounds one process. What took longer has a lower bound as its figure.
	answersWithin = 10 * time.Minute
	// informersRun is how long informers try to list what is a bomb.
	informersRun = time.Minute
	// logsFor is how long keys fail.
	logsFor = 7500 * time.Millisecond
	mib     = 1 << 20
)

// target is a process of one contestant that a benchmark attacks.
type target struct {
	cmd   *exec.Cmd
	lines chan string
	logs  atomic.Int64 // bytes on standard error
	end   func() (peak int64, killed bool)
}

// startTarget starts the part of one contestant as a process, with the defaults of the Go
// runtime.
func startTarget(b *testing.B, part, contestant string, args ...string) *target {
	b.Helper()
	t := &target{cmd: exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestBombsTarget$", "-test.v"), lines: make(chan string, 64)}
	t.cmd.Env = append(os.Environ(), targetPart+"="+part+"/"+contestant, targetArgs+"="+strings.Join(args, " "), "GOMEMLIMIT=off", "GOGC=100")
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	logs, err := t.cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := t.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _, _ = io.Copy(&counting{n: &t.logs}, logs) })
	running.Go(func() {
		defer close(t.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if text, ours := strings.CutPrefix(lines.Text(), "TARGET "); ours {
				t.lines <- text
			}
		}
	})
	stop := make(chan struct{})
	var peak int64
	var killed bool
	running.Go(func() {
		for {
			now, high := memory(t.cmd.Process.Pid)
			peak = max(peak, high)
			if now > mostRSS {
				killed = true
				_ = t.cmd.Process.Kill()
				return
			}
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	t.end = sync.OnceValues(func() (int64, bool) {
		close(stop)
		_, high := memory(t.cmd.Process.Pid)
		_ = t.cmd.Process.Kill()
		for range t.lines {
		}
		running.Wait()
		_ = t.cmd.Wait()
		return max(peak, high), killed
	})
	b.Cleanup(func() { t.end() })
	return t
}

// said is the next line of the process; false: it has ended, or takes too long.
func (t *target) said() (line string, is bool) {
	select {
	case line, is = <-t.lines:
		return line, is
	case <-time.After(answersWithin):
		return fmt.Sprintf("not finished within %s", answersWithin), false
	}
}

// memory is what a process takes now, and what it took at its peak, in bytes.
func memory(pid int) (now, peak int64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		switch name {
		case "VmRSS":
			now = kib << 10
		case "VmHWM":
			peak = kib << 10
		}
	}
	return now, peak
}

// counting counts what is written to it.
type counting struct{ n *atomic.Int64 }

func (c *counting) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// reportPeak gives the peak, and how the process answered.
func reportPeak(b *testing.B, t *target, answer string) {
	peak, killed := t.end()
	b.ReportMetric(float64(peak)/mib, "peak-RSS-MiB")
	b.ReportMetric(0, "ns/op")
	if killed {
		b.ReportMetric(1, "stopped")
		answer = fmt.Sprintf("stopped at %d MiB", mostRSS/mib)
	}
	b.Logf("%s: %d MiB; %s", b.Name(), peak/mib, answer)
}

// review is a body that reviews a Pod whose value at a path such as spec.containers is given.
func review(path string, value []byte) []byte {
	text := append(append([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"42","kind":{"group":"","version":"v1","kind":"Pod"},`+
		`"resource":{"group":"","version":"v1","resource":"pods"},"operation":"CREATE","namespace":"default","name":"one","userInfo":{},`+
		`"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one"},`), `"`+strings.ReplaceAll(path, ".", `":{"`)+`":`...), value...)
	return append(text, strings.Repeat("}", strings.Count(path, "."))+"}}}"...)
}

// ofCorpus is a value of 3 MiB of the corpus of hostile inputs.
func ofCorpus(b *testing.B, name string) []byte {
	for _, value := range hostile.Values(3*mib - 1024) {
		if value.Name == name {
			return value.Text
		}
	}
	b.Fatalf("the corpus has no %s", name)
	return nil
}

// containers is a list of about size bytes.
func containers(size int, element string) []byte {
	return []byte("[" + strings.Repeat(element+",", (size-1024)/(len(element)+1)) + element + "]")
}

// BenchmarkBombs_Webhook measures the peak memory of an operator's process whose webhook
// server gets one review that is small and becomes large. Every server has its defaults
// and validates Pods; every review goes to a process of its own.
func BenchmarkBombs_Webhook(b *testing.B) {
	corpus := func(name string) func(*testing.B) []byte {
		return func(b *testing.B) []byte { return ofCorpus(b, name) }
	}
	list := func(size int, element string) func(*testing.B) []byte {
		return func(*testing.B) []byte { return containers(size, element) }
	}
	for _, attack := range []struct {
		name, path string
		value      func(*testing.B) []byte
		times      int
	}{
		{"ordinary", "spec.containers", list(8<<10, `{"name":"a"}`), 1},
		{"named-containers-500KiB", "spec.containers", list(500<<10, `{"name":"a"}`), 1},
		{"named-containers-500KiB-16-at-once", "spec.containers", list(500<<10, `{"name":"a"}`), 16},
		{"empty-containers-3MiB", "spec.containers", list(3*mib, "{}"), 1},
		{"empty-containers-3MiB-16-at-once", "spec.containers", list(3*mib, "{}"), 16},
		{"empty-containers-3.8MiB", "spec.containers", list(38*mib/10, "{}"), 1},
		{"empty-containers-7MiB", "spec.containers", list(7*mib, "{}"), 1},
		{"named-containers-3MiB", "spec.containers", list(3*mib, `{"name":"a"}`), 1},
		{"named-containers-32MiB", "spec.containers", list(32*mib, `{"name":"a"}`), 1},
		{"deep-nesting-3MiB", "spec.unknown", corpus("deep beyond all bounds"), 1},
		{"many-keys-3MiB", "spec.nodeSelector", corpus("many keys"), 1},
		{"long-number-3MiB", "spec.priority", corpus("long number"), 1},
		{"many-long-numbers-3MiB", "spec.unknown", corpus("many long numbers"), 1},
		{"duplicate-keys-3MiB", "spec", corpus("one key of lists many times"), 1},
	} {
		b.Run(attack.name, func(b *testing.B) {
			body := review(attack.path, attack.value(b))
			for _, contestant := range []string{"flyball", "controller-runtime"} {
				b.Run(contestant, func(b *testing.B) {
					for b.Loop() {
						address, certificates := freeAddress(b), certificates(b)
						t := startTarget(b, "webhook", contestant, address, certificates)
						codes := bombard(b, "https://"+address+"/validate", body, attack.times)
						reportPeak(b, t, fmt.Sprintf("%d KiB answered with %s", len(body)>>10, codes))
					}
				})
			}
		})
	}
}

// bombard waits until url is served and sends the body to it so many times at once.
func bombard(b *testing.B, url string, body []byte, times int) (codes string) {
	client := &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // it is about memory
	defer client.CloseIdleConnections()
	ask := func(body []byte) string {
		answer, err := client.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			return "none"
		}
		defer answer.Body.Close()
		// controller-runtime answers with 200 and has the code in the review.
		text, _ := io.ReadAll(answer.Body)
		if _, rest, in := strings.Cut(string(text), `"code":`); in && len(rest) > 3 && answer.StatusCode == http.StatusOK {
			if code, err := strconv.Atoi(rest[:3]); err == nil {
				return strconv.Itoa(code)
			}
		}
		return strconv.Itoa(answer.StatusCode)
	}
	eventually(b, "the webhook server answers", func() bool { return ask([]byte("{}")) != "none" })
	all := make([]string, times)
	var asked sync.WaitGroup
	for i := range all {
		asked.Go(func() { all[i] = ask(body) })
	}
	asked.Wait()
	counts := map[string]int{}
	for _, code := range all {
		counts[code]++
	}
	return fmt.Sprint(counts)
}

// freeAddress is one of this machine that nobody listens on yet.
func freeAddress(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func certificates(b *testing.B) (dir string) {
	ca, err := keypair.NewAuthority(time.Now(), "bombs")
	if err != nil {
		b.Fatal(err)
	}
	pair, err := ca.Server(time.Now())
	if err != nil {
		b.Fatal(err)
	}
	dir = b.TempDir()
	for name, data := range map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// BenchmarkBombs_Client measures the peak memory of a process that reads one compressed
// answer of an API server: by a client's get and list, and by the list of an informer,
// which tries again for some seconds.
func BenchmarkBombs_Client(b *testing.B) {
	const list = `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{}`
	for _, bomb := range []struct {
		name string
		list []byte
		one  []byte
	}{
		{"2GiB", compressed(2<<30, list, ",{}", "]}"), compressed(2<<30, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"one"},"type":"`, "x", `"}`)},
		{"100MiB", compressed(100*mib, list, ",{}", "]}"), compressed(100*mib, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"one","finalizers":[""`, `,""`, `]}}`)},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Query().Get("sendInitialEvents") == "true":
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
			case strings.HasSuffix(r.URL.Path, "/secrets"):
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(bomb.list)
			case strings.HasSuffix(r.URL.Path, "/secrets/one"):
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(bomb.one)
			case r.URL.Path == "/api/v1":
				_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[`+
					`{"name":"secrets","singularName":"secret","namespaced":true,"kind":"Secret","verbs":["get","list","watch"]}]}`)
			case r.URL.Path == "/api":
				_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
			case r.URL.Path == "/apis":
				_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
			default:
				http.NotFound(w, r)
			}
		}))
		b.Logf("%s: a list of %d bytes, an object of %d", bomb.name, len(bomb.list), len(bomb.one))
		for _, part := range []string{"get", "list", "informer"} {
			b.Run(bomb.name+"/"+part, func(b *testing.B) {
				for _, contestant := range []string{"flyball", "client-go", "controller-runtime"} {
					b.Run(contestant, func(b *testing.B) {
						for b.Loop() {
							t := startTarget(b, part, contestant, server.URL)
							answer, _ := t.said()
							reportPeak(b, t, answer)
						}
					})
				}
			})
		}
		server.Close()
	}
}

// compressed is a text of about size bytes after decompression. What repeats is compressed
// once: members of gzip that follow each other are one text.
func compressed(size int, head, element, tail string) []byte {
	member := func(text string) []byte {
		var out bytes.Buffer
		z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is one
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return out.Bytes()
	}
	const part = 4 * mib
	out, middle := member(head), member(strings.Repeat(element, part/len(element)))
	for range size / part {
		out = append(out, middle...)
	}
	return append(out, member(tail)...)
}

// BenchmarkBombs_Log measures how much a controller logs in 7.5 s whose thousand keys
// fail, half of them by panics and half by errors, and are added twenty thousand times a
// second, as if somebody changed their objects as often. Kubebuilder's template sets
// controller-runtime's logger up for development.
func BenchmarkBombs_Log(b *testing.B) {
	for _, contestant := range []string{"flyball", "controller-runtime", "controller-runtime-development"} {
		b.Run(contestant, func(b *testing.B) {
			for b.Loop() {
				t := startTarget(b, "log", contestant)
				answer, is := t.said()
				if !is {
					b.Fatalf("the process has ended: %q", answer)
				}
				t.end()
				failed, err := strconv.ParseInt(answer, 10, 64)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(t.logs.Load())/1e6, "logged-MB")
				b.ReportMetric(float64(failed), "failures")
				b.ReportMetric(float64(t.logs.Load())/float64(max(failed, 1)), "bytes/failure")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}
