// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/localserver"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/embedded"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

// children runs a program as a process of this machine, against a simulated server on loopback, in real time.
type children struct {
	command []string
	env     []string
	crds    []*unstructured.Unstructured
	// namespaces that exist at the start.
	namespaces []string
	restWithin time.Duration
	scratch    string // a directory for kubeconfigs and the output of the program
	mu         sync.Mutex
	number     int
	learned    bool          // a run has been used to learn gap
	gap        time.Duration // the longest time without movement in a step that then went on
}

// How long nothing must move at rest, in real time.
const (
	leastCalm = 2 * time.Second
	mostCalm  = 15 * time.Second
	firstCalm = 10 * time.Second // while it is not known how the program behaves
)

// play runs a walk with a plan. like is a run without faults; nil: this is the first one.
func (c *children) play(ctx context.Context, w walk, p plan, seed uint64, like *trial) (out *trial, err error) {
	c.mu.Lock()
	learning := like == nil && !c.learned
	c.learned = true
	c.mu.Unlock()
	out = &trial{plan: p, seed: seed, peaks: map[ref]int64{}}
	record := newRecorder(out)
	life := c.newLife(record)
	control := aim.New(record, life, func(f aim.Fault) { record.happen(ofFaults, f.String()) })
	defer control.Close()
	var crds []runtime.Object
	for _, crd := range c.crds {
		crds = append(crds, crd.DeepCopy())
	}
	opts := embedded.Options{CRDs: crds, Kubeconfig: filepath.Join(life.dir, "kubeconfig")}
	opts.Listen.Namespaces, opts.Listen.Seed, opts.Listen.Tracer = c.namespaces, seed, control
	err = embedded.Run(ctx, opts, func(ctx context.Context, cluster embedded.Cluster) error {
		record.begin(cluster.Server)
		as, err := client.New(&rest.Config{Host: "http://simulated", Transport: cluster.Server.Direct(user)}, clientscheme.Scheme, client.Options{})
		if err != nil {
			return err
		}
		initial := contentOf(cluster.Server)
		cluster.Server.RefuseStreams(p.travels())
		life.server, life.kubeconfig = cluster.Server, cluster.Kubeconfig
		life.start()
		defer life.end()
		control.Begin(cluster.Server)
		c.rest(ctx, record, learning) // it starts
		record.restart()              // the times of faults count from here
		if err := control.Arm(aimed(p)...); err != nil {
			return err
		}
		for i, s := range w.steps {
			record.next(i)
			begun := time.Now()
			if err := s.do(ctx, as); err != nil {
				out.refused = fmt.Sprintf("%s: %v", s.text, err)
				return nil
			}
			var end objects
			if i+1 == p.Hurry && like != nil {
				sleep(ctx, min(like.took[i], 3*time.Second))
			} else if c.rest(ctx, record, learning) {
				end = without(contentOf(cluster.Server), initial)
			}
			out.ends, out.took = append(out.ends, end), append(out.took, time.Since(begun))
		}
		control.Close()
		if c.rest(ctx, record, learning) {
			out.last = without(contentOf(cluster.Server), initial)
		} else {
			out.addWrong(wrong{"V7", fmt.Sprintf("the program does not come to rest within %s", c.restWithin)})
		}
		return nil
	})
	if text := life.complaint(); text != "" {
		out.addWrong(wrong{"panic", text})
	}
	out.write = func(dir string) ([]string, error) { return life.keep(dir) }
	return out, err
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// rest waits until nothing moves, and reports whether that was within the bound.
func (c *children) rest(ctx context.Context, record *recorder, learning bool) bool {
	deadline := time.Now().Add(c.restWithin)
	for ctx.Err() == nil && time.Now().Before(deadline) {
		since, gap := record.still()
		c.mu.Lock()
		if learning {
			c.gap = max(c.gap, gap)
		}
		calm := min(max(leastCalm, 3*c.gap/2), mostCalm)
		c.mu.Unlock()
		if learning {
			calm = max(calm, firstCalm)
		}
		if since >= calm {
			return true
		}
		sleep(ctx, 50*time.Millisecond)
	}
	return false
}

// aimed returns the faults of a plan.
func aimed(p plan) (out []aim.Fault) {
	for _, op := range p.Faults {
		f := aim.Fault{
			Fault: string(op.Verb), Kind: op.Kind, For: aim.Duration(op.For), Amount: op.Amount, Code: op.Code,
			Before: op.When.Before, After: op.When.After, Nth: op.When.Nth, User: op.When.User, At: aim.Duration(op.When.At),
		}
		out = append(out, f)
	}
	return out
}

// contentOf returns the objects of a server.
func contentOf(s *simulate.Server) objects {
	all := objects{}
	for kind, obj := range s.Everything() {
		u, ok := obj.(*unstructured.Unstructured)
		// Each namespace gets these, sooner or later.
		given := kind.Kind == "ServiceAccount" && obj.GetName() == "default" || kind.Kind == "ConfigMap" && obj.GetName() == "kube-root-ca.crt"
		if ok && !given && !excused(kind.String()) {
			all[ref{kind.String(), keyText(u.GetNamespace(), u.GetName())}] = u.Object
		}
	}
	return all
}

// life is the program during one run: one process after the other.
type life struct {
	in         *children
	record     *recorder
	dir        string
	server     *simulate.Server
	kubeconfig string
	output     tail
	work       sync.WaitGroup
	mu         struct {
		sync.Mutex
		process *exec.Cmd
		gone    chan struct{} // closed when process has ended
		killed  bool
		over    bool
	}
}

func (c *children) newLife(record *recorder) *life {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	l := &life{in: c, record: record, dir: filepath.Join(c.scratch, fmt.Sprint("run-", c.number))}
	_ = os.MkdirAll(l.dir, 0o700) // the kubeconfig says why it cannot be written
	return l
}

// start starts a process, unless the run is over.
func (l *life) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.over {
		return
	}
	args := slices.Clone(l.in.command)
	for i := range args {
		for strings.Contains(args[i], portPlace) {
			port, err := localserver.FreePort()
			if err != nil {
				l.record.happen(ofLives, "the process cannot be started: "+err.Error())
				return
			}
			args[i] = strings.Replace(args[i], portPlace, strconv.Itoa(port), 1)
		}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), l.in.env...), "KUBECONFIG="+l.kubeconfig)
	cmd.Stdout, cmd.Stderr = &l.output, &l.output
	asGroup(cmd)
	gone := make(chan struct{})
	l.mu.process, l.mu.gone, l.mu.killed = cmd, gone, false
	if err := cmd.Start(); err != nil {
		l.record.happen(ofLives, "the process cannot be started: "+err.Error())
		close(gone)
		return
	}
	l.record.happen(ofLives, "the process starts")
	l.work.Go(func() {
		err := cmd.Wait()
		close(gone)
		l.mu.Lock()
		again := !l.mu.killed && !l.mu.over
		l.mu.Unlock()
		if !again {
			return
		}
		l.record.happen(ofLives, fmt.Sprintf("the process has ended by itself: %v", errors.Join(err)))
		time.Sleep(restartAfter)
		l.start()
	})
}

const (
	// portPlace in an argument stands for a free port.
	portPlace = "{port}"
	// restartAfter is how long a kubelet takes to start a process again.
	restartAfter = time.Second
)

// Kill implements aim.Process. Leases that the process holds are freed: a test does not wait for them.
func (l *life) Kill(down time.Duration) {
	l.mu.Lock()
	process, gone := l.mu.process, l.mu.gone
	l.mu.killed = true
	l.mu.Unlock()
	if process == nil || process.Process == nil {
		return
	}
	endGroup(process)
	<-gone
	l.record.happen(ofLives, "the process is gone")
	l.freeLeases()
	l.work.Go(func() {
		time.Sleep(down)
		l.start()
	})
}

func (l *life) freeLeases() {
	leases := schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}
	for _, lease := range l.server.Objects(leases) {
		key := types.NamespacedName{Namespace: lease.GetNamespace(), Name: lease.GetName()}
		_ = l.server.Change(leases, key, func(m metav1.Object) { // a removed one needs none
			if u, ok := m.(*unstructured.Unstructured); ok {
				unstructured.RemoveNestedField(u.Object, "spec", "holderIdentity")
			}
		})
	}
}

// Pause implements aim.Process.
func (l *life) Pause(d time.Duration) {
	l.mu.Lock()
	process := l.mu.process
	l.mu.Unlock()
	if process == nil || process.Process == nil {
		return
	}
	hold(process, true)
	l.work.Go(func() {
		time.Sleep(d)
		hold(process, false)
	})
}

// end ends the process for good.
func (l *life) end() {
	l.mu.Lock()
	l.mu.over = true
	process, gone := l.mu.process, l.mu.gone
	l.mu.Unlock()
	if process != nil && process.Process != nil {
		endGroup(process)
		<-gone
	}
	l.work.Wait()
}

// complaint returns what the program has written about a panic or a data race; empty: nothing.
func (l *life) complaint() string {
	text := l.output.text()
	for _, mark := range []string{"panic: ", "fatal error: ", "WARNING: DATA RACE", "Observed a panic"} {
		if _, after, found := strings.Cut(text, mark); found {
			line, _, _ := strings.Cut(after, "\n")
			return strings.TrimSpace(mark + line)
		}
	}
	return ""
}

// keep writes the output of the program into a directory.
func (l *life) keep(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "output.txt")
	return []string{file}, os.WriteFile(file, []byte(l.output.text()), 0o644)
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

const mostOutput = 4 << 20

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept.Len() > mostOutput {
		t.kept.Next(t.kept.Len() / 2)
	}
	return t.kept.Write(b)
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.String()
}
