// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSchedule_StepsWaitForWhatTheyNeed(t *testing.T) {
	all := []step{{name: "slow"}, {name: "a"}, {name: "needs-slow", after: "slow"}, {name: "b"}, {name: "c"}}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		running, most := 0, 0
		schedule(all, 2, func(s step) result {
			mu.Lock()
			order = append(order, s.name)
			running++
			most = max(most, running)
			mu.Unlock()
			if s.name == "slow" {
				time.Sleep(30 * time.Second)
			}
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			running--
			return result{}
		})
		if want := []string{"slow", "a", "b", "needs-slow", "c"}; !slices.Equal(slices.Sorted(slices.Values(order[:2])), []string{"a", "slow"}) || !slices.Equal(order[2:], want[2:]) {
			t.Errorf("the steps began as %q, want %q: each as soon as there is a lane and what it needs has passed", order, want)
		}
		if most != 2 {
			t.Errorf("at most %d steps ran at a time, want 2", most)
		}
	})
}

func TestSchedule_StepsAfterAFailureAreNotRun(t *testing.T) {
	all := []step{{name: "fails"}, {name: "next", after: "fails"}, {name: "last", after: "next"}, {name: "other"}}
	var ran []string
	got := schedule(all, 1, func(s step) result {
		ran = append(ran, s.name)
		if s.name == "fails" {
			return result{err: errors.New("no")}
		}
		return result{}
	})
	if want := []string{"fails", "other"}; !slices.Equal(ran, want) {
		t.Errorf("%q ran, want %q", ran, want)
	}
	var words []string
	for _, r := range got {
		words = append(words, r.word())
	}
	if want := []string{"FAILED", "not run", "not run", "ok"}; !slices.Equal(words, want) {
		t.Errorf("results %q, want %q", words, want)
	}
}

func TestSteps_NeedOneThatComesBefore(t *testing.T) {
	seen := map[string]bool{"": true}
	for _, s := range steps(packages{}, options{}) {
		if seen[s.name] {
			t.Errorf("two steps are called %q", s.name)
		}
		if !seen[s.after] {
			t.Errorf("%s comes before %s, which it needs", s.name, s.after)
		}
		seen[s.name] = true
		if _, err := os.Stat(filepath.Join("..", "..", s.dir)); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

func TestSteps_AreChosenWithWhatTheyNeed(t *testing.T) {
	all := []step{{name: "a"}, {name: "b", after: "a"}, {name: "c"}, {name: "asked", named: true}}
	if got, err := choose(all, nil); err != nil || len(got) != 3 {
		t.Errorf("choose all = %v, %v, want a, b and c", got, err)
	}
	got, err := choose(all, []string{"b"})
	if err != nil || len(got) != 2 || got[0].name != "a" || got[1].name != "b" {
		t.Errorf("choose b = %v, %v, want a and b", got, err)
	}
	if _, err := choose(all, []string{"d"}); err == nil || !strings.Contains(err.Error(), `no step is called "d"`) {
		t.Errorf("choose d: %v, want an error that names it", err)
	}
}

func TestFind_EveryPackageWithTestsIsInOneStep(t *testing.T) {
	root, err := output(t.Context(), ".", "go", "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		t.Fatal(err)
	}
	found, err := find(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for want, in := range map[string][]string{
		module + "/internal/deque":    found.plain,
		module + "/reconcile":         found.race,
		module + "/simulate":          found.race,
		module + "/simulate/kit":      found.plain,
		module + "/integration":       found.servers,
		module + "/examples/website":  found.programs,
		module + "/examples/operator": found.programs,
	} {
		if !slices.Contains(in, want) {
			t.Errorf("%s is not in the step that it belongs to: %d plain, %d programs, %d race, %d servers", want, len(found.plain), len(found.programs), len(found.race), len(found.servers))
		}
	}
	tested, err := output(t.Context(), root, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", module+"/...")
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Sorted(slices.Values(slices.Concat(found.plain, found.programs, found.race, found.servers)))
	if want := slices.Sorted(slices.Values(strings.Fields(tested))); !slices.Equal(all, want) {
		t.Errorf("the steps test\n%q\nwant each package with tests once:\n%q", all, want)
	}
}

// Modules beside the workspace have a step each, but for guests, which make nightly runs.
func TestSteps_TestEveryModule(t *testing.T) {
	root := filepath.Join("..", "..")
	workspace, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		t.Fatal(err)
	}
	dirs := map[string]bool{}
	for _, s := range steps(packages{}, options{}) {
		dirs[s.dir] = true
	}
	listed, err := output(t.Context(), root, "git", "ls-files", "*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for file := range strings.Lines(listed) {
		dir := strings.TrimSuffix(strings.TrimSpace(file), "/go.mod")
		switch {
		case dirs[dir], strings.Contains(string(workspace), "./"+dir+"\n"), strings.HasPrefix(dir, "hack/guests"):
		default:
			t.Errorf("no step tests the module in %s", dir)
		}
	}
}

// A test that has another name than in heavy.txt would run under the race detector alone.
func TestHeavy_NamesTestsThatAreThere(t *testing.T) {
	for line := range strings.Lines(heavy) {
		in, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(in), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "\nfunc "+name+"(")
		}) {
			t.Errorf("%s has no test %s", in, name)
		}
	}
}

func TestLines_StayWhole(t *testing.T) {
	var out strings.Builder
	l := newLines(&out)
	a, b := &whole{lines: l}, &whole{lines: l}
	for _, w := range []struct {
		to   *whole
		text string
	}{{a, "ok  \tfirst"}, {b, "ok  \tsecond\nok"}, {a, "\t1s\n"}, {b, "  \tthird\n"}, {a, "no end"}} {
		fmt.Fprint(w.to, w.text)
	}
	if err := errors.Join(a.end(), b.end()); err != nil {
		t.Fatal(err)
	}
	if want := "ok  \tsecond\nok  \tfirst\t1s\nok  \tthird\nno end\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestRunStep_NamesWhatFailed(t *testing.T) {
	w := &whole{lines: newLines(io.Discard)}
	for _, part := range []string{"=== RUN\n--- FA", "IL: TestA (0.01s)\n    --- FAIL: TestA/b (0.01s)\nFAIL\nFAIL\texample.com/a\t0.1s\nok  \texample.com/b\t1s\n", "FAIL\texample.com/c [build failed]\nFAIL\n"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"TestA", "in example.com/a", "in example.com/c [build failed]"}; !slices.Equal(w.failed, want) {
		t.Errorf("%q failed, want %q", w.failed, want)
	}
}

func TestLines_SilenceIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		l := newLines(&out)
		stop := l.report(30 * time.Second)
		l.started("race")
		l.started("control-plane")
		time.Sleep(20 * time.Second)
		if _, err := l.Write([]byte("ok\n")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Second)
		l.ended("control-plane")
		time.Sleep(15 * time.Second)
		stop()
		want := "ok\n# after 45s: race and control-plane\n# after 1m10s: race\n"
		if out.String() != want {
			t.Errorf("printed\n%swant\n%s", out.String(), want)
		}
	})
}

func TestRetry_AProxyMayFailTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		began := time.Now()
		var out strings.Builder
		err := retry(t.Context(), 4, 2*time.Second, &out, func() error {
			if calls++; calls <= 2 {
				return errors.New("502 Bad Gateway")
			}
			return nil
		})
		if err != nil || calls != 3 || time.Since(began) != 6*time.Second {
			t.Errorf("%v after %d calls and %s, want success with the third, after 6s", err, calls, time.Since(began))
		}
		if strings.Count(out.String(), "502 Bad Gateway") != 2 {
			t.Errorf("printed %q, want each failure", out.String())
		}
		calls = 0
		if err := retry(t.Context(), 2, time.Second, &out, func() error { calls++; return errors.New("never") }); err == nil || calls != 2 {
			t.Errorf("%v after %d calls, want the last error, after two that are alike", err, calls)
		}
		calls = 0
		err = retry(t.Context(), 3, time.Second, &out, func() error {
			if calls++; calls > 12 {
				return nil
			}
			return fmt.Errorf("module %d: 502 Bad Gateway", calls/2)
		})
		if err != nil || calls != 13 {
			t.Errorf("%v after %d calls, want that it goes on while it comes further", err, calls)
		}
	})
}

func TestCheckRoom_AsksForWhatTheRunWrites(t *testing.T) {
	const GB = 1e9
	for _, c := range []struct {
		name  string
		built bool
		left  int64
		want  []string // places without room
	}{
		{"a fresh machine with a small disk", false, 3 * GB, []string{"GOCACHE"}},
		{"a fresh machine with an empty disk", false, 20 * GB, nil},
		{"a later run", true, 3 * GB, nil},
		{"a full disk", true, GB / 2, []string{"GOCACHE", "GOMODCACHE", "TMPDIR"}},
	} {
		err := checkRoom(places("/build", "/modules", c.built), func(string) (int64, error) { return c.left, nil })
		if (err != nil) != (c.want != nil) {
			t.Errorf("%s: %v, want an error: %t", c.name, err, c.want != nil)
		}
		for _, name := range c.want {
			if !strings.Contains(err.Error(), "set "+name+" to another disk") {
				t.Errorf("%s: the error does not name %s:\n%v", c.name, name, err)
			}
		}
	}
}

// Each line is what a stranger's machine may lack. The message names it, and what to do.
func TestCheck_NamesWhatIsMissing(t *testing.T) {
	empty := t.TempDir()
	for name, c := range map[string]struct {
		set  map[string]string
		call func() error
		want []string
	}{
		"no C compiler":          {call: func() error { return checkTemporary(t.Context(), "no-such-cc -m64") }, want: []string{"no-such-cc is not there", "build-essential"}},
		"a compiler that fails":  {call: func() error { return checkTemporary(t.Context(), "false") }, want: []string{"a C compiler that works", "libc6-dev"}},
		"no git":                 {set: map[string]string{"PATH": empty}, call: func() error { return checkGit(t.Context(), ".") }, want: []string{"- git", "Install it"}},
		"no repository":          {set: map[string]string{"GIT_CEILING_DIRECTORIES": filepath.Dir(empty)}, call: func() error { return checkGit(t.Context(), empty) }, want: []string{"Clone it"}},
		"no temporary directory": {set: map[string]string{"TMPDIR": filepath.Join(empty, "none")}, call: func() error { return checkTemporary(t.Context(), "cc") }, want: []string{"set TMPDIR"}},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range c.set {
				t.Setenv(key, value)
			}
			err := c.call()
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want %q in it", err, want)
				}
			}
		})
	}
}

func TestFree_AsksForAPlaceThatIsNotThereYet(t *testing.T) {
	left, err := free(filepath.Join(t.TempDir(), "not", "yet"))
	if err != nil || left <= 0 {
		t.Errorf("free = %d, %v, want some bytes", left, err)
	}
}
