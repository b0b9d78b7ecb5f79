// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/localserver"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate"
)

// life is the program during one run: its processes, and those after a restart.
type life struct {
	in         *children
	record     *recorder
	dir        string
	server     *simulate.Server
	kubeconfig string
	places     []string // in arguments, each with what stands there
	output     tail
	over       chan struct{} // closed at the end
	work       sync.WaitGroup
	mu         struct {
		sync.Mutex
		processes []*process // by program; those of the present start
		started   time.Time
		down      bool // a fault has killed them
		held      bool // a fault has stopped them
		ended     bool
		exits     int   // of processes by themselves
		how       error // the last exit
		broken    error // the program cannot be started
	}
}

// process is one that has been started.
type process struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed when it has ended; then its number may be that of another
}

func (c *children) newLife(record *recorder) *life {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.number++
	l := &life{in: c, record: record, dir: filepath.Join(c.scratch, fmt.Sprint("run-", c.mu.number)), over: make(chan struct{})}
	_ = os.MkdirAll(l.dir, 0o700) // the kubeconfig says why it cannot be written
	return l
}

const (
	// portPlace in an argument stands for a free port.
	portPlace = "{port}"
	// restartAfter is how long after its end by itself a process is started again, which doubles with each.
	restartAfter = 200 * time.Millisecond
	longestPause = 5 * time.Second
	// mostEarlyExits is how often a program may end by itself before the user does anything, and mostExits later.
	mostEarlyExits, mostExits = 3, 6
	// pipesWithin is how long after the end of a process its output may take, which others may hold open.
	pipesWithin = 200 * time.Millisecond
)

// start starts all processes, unless the run is over.
func (l *life) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.processes = make([]*process, len(l.in.programs))
	l.mu.down, l.mu.held = false, false
	for i := range l.in.programs {
		l.startLocked(i)
	}
}

// startLocked starts one process.
func (l *life) startLocked(program int) {
	if l.mu.ended {
		return
	}
	args, places := slices.Clone(l.in.programs[program]), strings.NewReplacer(l.places...)
	for i := range args {
		args[i] = places.Replace(args[i])
		for strings.Contains(args[i], portPlace) {
			port, err := localserver.FreePort()
			if err != nil {
				l.mu.broken = err
				return
			}
			args[i] = strings.Replace(args[i], portPlace, strconv.Itoa(port), 1)
		}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), l.in.env...), "KUBECONFIG="+l.kubeconfig)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &l.output, &l.output, pipesWithin
	asGroup(cmd)
	if err := cmd.Start(); err != nil {
		l.mu.broken = fmt.Errorf("start the program: %w", err)
		return
	}
	l.mu.started = time.Now()
	l.record.started()
	p := &process{cmd, make(chan struct{})}
	l.mu.processes[program] = p
	l.work.Go(func() { l.await(program, p) })
}

// await waits for the end of a process. One that has ended by itself is started again.
func (l *life) await(program int, p *process) {
	err := p.cmd.Wait()
	endGroup(p.cmd) // what it has forked
	close(p.gone)
	l.mu.Lock()
	if l.mu.down || l.mu.ended {
		l.mu.Unlock()
		return
	}
	pause := min(restartAfter<<min(l.mu.exits, mostExits), longestPause)
	l.mu.exits++
	l.mu.how = err
	l.mu.Unlock()
	l.record.happen(ofLives, fmt.Sprintf("the process has ended by itself: %s", exitText(err)))
	l.pause(pause)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.processes[program] == p && !l.mu.down && !l.mu.held {
		l.startLocked(program)
	}
}

func exitText(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// pause waits, or until the run is over.
func (l *life) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-l.over:
	}
}

// runs reports whether the processes run, and since when.
func (l *life) runs() (running bool, since time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.mu.processes {
		if p == nil || p.isGone() {
			return false, 0
		}
	}
	return !l.mu.down && !l.mu.held, time.Since(l.mu.started)
}

// failed returns why the program cannot be examined, after it has ended by itself so often.
func (l *life) failed(most int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.mu.broken != nil:
		return l.mu.broken
	case l.mu.exits < most:
		return nil
	}
	problem := "the program ends by itself again and again"
	if l.portTaken() {
		problem = "the program's port is in use; write {port} in its arguments for a free one"
	}
	return fmt.Errorf("%s, the last time with %s; its last output:\n%s", problem, exitText(l.mu.how), l.output.end())
}

// Kill implements aim.Process. Leases that the processes hold are freed: a test does not wait for them.
func (l *life) Kill(down time.Duration) {
	l.mu.Lock()
	all := l.mu.processes
	again := l.mu.down || l.mu.ended
	l.mu.down = true
	l.mu.Unlock()
	if again {
		return
	}
	for _, p := range all {
		p.kill()
	}
	l.record.happen(ofLives, "the process is gone")
	l.freeLeases()
	l.work.Go(func() {
		l.pause(down)
		l.start()
	})
}

func (l *life) freeLeases() {
	leases := schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}
	for _, lease := range l.server.Objects(leases) {
		_ = l.server.Change(leases, kube.KeyOf(lease), func(m metav1.Object) { // a removed one needs none
			if u, ok := m.(*unstructured.Unstructured); ok {
				unstructured.RemoveNestedField(u.Object, "spec", "holderIdentity")
			}
		})
	}
}

// Pause implements aim.Process. A process that ends by itself meanwhile is started again afterwards.
func (l *life) Pause(d time.Duration) {
	l.mu.Lock()
	all, over := slices.Clone(l.mu.processes), l.mu.ended
	l.mu.held = true
	l.mu.Unlock()
	if over {
		return
	}
	for _, p := range all {
		p.hold(true)
	}
	l.work.Go(func() {
		l.pause(d)
		for _, p := range all {
			p.hold(false)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.mu.held = false
		l.record.happen(ofLives, "the process goes on")
		for i, p := range l.mu.processes {
			if p != nil && p.isGone() && !l.mu.down {
				l.startLocked(i)
			}
		}
	})
}

// end ends the processes for good.
func (l *life) end() {
	l.mu.Lock()
	l.mu.ended = true
	all := l.mu.processes
	l.mu.Unlock()
	close(l.over)
	for _, p := range all {
		p.kill()
	}
	l.work.Wait()
}

func (p *process) isGone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// kill ends a process at once, with all that it has forked into its group.
func (p *process) kill() {
	if p == nil || p.isGone() {
		return
	}
	endGroup(p.cmd)
	<-p.gone
}

// hold stops a process, or lets it go on.
func (p *process) hold(still bool) {
	if p != nil && !p.isGone() {
		hold(p.cmd, still)
	}
}

// portTaken reports whether the program has written that its port is in use.
func (l *life) portTaken() bool {
	text := l.output.text()
	return strings.Contains(text, "ddress already in use") || strings.Contains(text, "EADDRINUSE")
}

// complaints returns what the program has written about panics and data races, the first of each.
func (t *tail) complaints() (out []wrong) {
	text := "\n" + t.text()
	for _, mark := range []struct{ text, rule string }{
		{"\npanic: ", "panic"}, {"\nfatal error: ", "panic"}, {"Observed a panic", "panic"}, {"WARNING: DATA RACE", "data race"},
	} {
		_, after, found := strings.Cut(text, mark.text)
		if !found || slices.ContainsFunc(out, func(w wrong) bool { return w.rule == mark.rule }) {
			continue
		}
		line, _, _ := strings.Cut(after, "\n")
		said := strings.TrimSpace(mark.text + line)
		if frames := framesIn(after, 2); len(frames) > 0 { // a data race has two stacks
			said += " at " + strings.Join(frames, ", and at ")
		}
		out = append(out, wrong{mark.rule, said})
	}
	return out
}

// isPlace matches the line of a stack that says where a function is.
var isPlace = regexp.MustCompile(`^/.*:[0-9]+$`)

// mostReport is how many lines of a report are read.
const mostReport = 200

// nameOf returns the function of a line of a stack, which has arguments.
func nameOf(line string) string {
	if i := strings.LastIndex(line, "("); i > 0 {
		return line[:i]
	}
	return line
}

// keep writes the output of the program into a directory.
func (t *tail) keep(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "output.txt")
	return []string{file}, os.WriteFile(file, []byte(t.text()), 0o644)
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

// end returns the last lines.
func (t *tail) end() string {
	const most = 12
	lines := strings.Split(strings.TrimRight(t.text(), "\n"), "\n")
	return strings.Join(lines[max(len(lines)-most, 0):], "\n")
}
