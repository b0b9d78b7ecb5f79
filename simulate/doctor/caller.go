// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// callers are the lines of the program's code that have sent requests.
type callers struct {
	mu struct {
		sync.Mutex
		sent []sent // in their order
	}
}

type sent struct{ method, path, line string }

// wrap returns a transport that takes note of who sends.
func (c *callers) wrap(next http.RoundTripper) http.RoundTripper { return noting{c, next} }

type noting struct {
	in   *callers
	next http.RoundTripper
}

// RoundTrip sends r.
func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		line := callerLine(0)
		n.in.mu.Lock()
		n.in.mu.sent = append(n.in.mu.sent, sent{r.Method, r.URL.Path, line})
		n.in.mu.Unlock()
	}
	return n.next.RoundTrip(r)
}

// WrappedRoundTripper returns the next transport.
func (n noting) WrappedRoundTripper() http.RoundTripper { return n.next }

// callerLine returns the line of the user's code that is nearest on the stack; empty: there is none.
func callerLine(skip int) string {
	const deep = 96
	callers := make([]uintptr, deep)
	frames := runtime.CallersFrames(callers[:runtime.Callers(skip+2, callers)])
	for {
		frame, more := frames.Next()
		if isUsers(frame.Function) {
			return fmt.Sprintf("%s:%d (%s)", lastTwo(frame.File), frame.Line, frame.Function[strings.LastIndex(frame.Function, "/")+1:])
		}
		if !more {
			return ""
		}
	}
}

// framesIn returns the first line of the user's code in each of the stacks of a report of Go, and at most so many.
func framesIn(report string, most int) (frames []string) {
	lines := strings.Split(report, "\n")
	open := true // the next frame of the user is the first of its stack
	for i := 0; i+1 < len(lines) && i < mostReport && len(frames) < most; i++ {
		function, place := strings.TrimSpace(lines[i]), strings.TrimSpace(lines[i+1])
		if function == "" {
			open = true
		}
		file, _, _ := strings.Cut(place, " +0x")
		name := nameOf(function)
		if open && isPlace.MatchString(file) && !strings.HasPrefix(name, "created by ") && isUsers(name) {
			frames = append(frames, fmt.Sprintf("%s (%s)", lastTwo(file), name[strings.LastIndex(name, "/")+1:]))
			open = false
		}
	}
	return frames
}

// lastTwo returns the last two parts of a file's path.
func lastTwo(file string) string {
	return filepath.ToSlash(filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file)))
}

// frameworks are modules whose code is not the user's.
var frameworks = []string{"k8s.io/", "sigs.k8s.io/controller-runtime/", "sigs.k8s.io/structured-merge-diff/", "github.com/flyball-dev/flyball/", "golang.org/x/", "github.com/onsi/"}

// isUsers reports whether a function is of the program, and not of Go, Kubernetes' libraries or a framework.
func isUsers(function string) bool {
	first, rest, found := strings.Cut(function, "/")
	switch {
	case !found:
		return strings.HasPrefix(function, "main.")
	case !strings.Contains(first, "."): // of Go
		return false
	case strings.Contains(rest, "_test."), strings.HasPrefix(function, "github.com/flyball-dev/flyball/examples/"), strings.Contains(rest, "/testdata/"):
		return true
	}
	for _, framework := range frameworks {
		if strings.HasPrefix(function, framework) {
			return false
		}
	}
	return true
}

// panicked returns where a panic was raised, with a text before it; empty: it is not known.
func panicked() string {
	if line := callerLine(1); line != "" {
		return " at " + line
	}
	return ""
}

// join gives the writes of a run, and the changes that they have made, their lines.
func (c *callers) join(t *trial) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := map[string][]string{}
	for _, s := range c.mu.sent {
		next[s.method+" "+s.path] = append(next[s.method+" "+s.path], s.line)
	}
	for i := range t.asks {
		a := &t.asks[i]
		if a.Who != operator {
			continue
		}
		verb, _, _ := strings.Cut(a.Write, " ")
		key := method(verb) + " " + a.path
		if lines := next[key]; len(lines) > 0 {
			a.Line, next[key] = lines[0], lines[1:]
		}
	}
	for i := range t.changes {
		c := &t.changes[i]
		if c.Who != operator {
			continue
		}
		for j := range t.asks {
			if a := t.asks[j]; a.Who == operator && a.At <= c.At && (a.Of == c.Of || a.Of.Kind == c.Of.Kind && strings.HasPrefix(a.Write, "create ") && c.Verb == "created") {
				c.Line = a.Line
			}
		}
	}
}
