// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// A loop of requests is found by how many there are within some time, and a poll in a longer run is none.
func TestRecorder_CountsRequestsWithinSomeTime(t *testing.T) {
	run := func(requests int, every time.Duration) *trial {
		out, now := &trial{requests: map[string]int{}}, time.Time{}
		r := newRecorder(out, func() time.Time { return now })
		r.begin(&simulate.Server{})
		for range requests {
			r.Asked(simulate.Request{Verb: "get", Kind: schema.GroupKind{Kind: "Pod"}})
			now = now.Add(every)
		}
		return out
	}
	r := &reference{runs: []*trial{run(20, time.Second/10)}, view: &view{}}
	if got := r.judge(run(5000, time.Second/10)); len(got) != 0 {
		t.Errorf("a poll is %v", got)
	}
	if got := r.judge(run(5000, time.Millisecond)); len(got) != 1 || got[0].class != Restless {
		t.Errorf("5000 requests within five seconds are %v, want %s", got, Restless)
	}
}

// What the program asks for the same at rest is a loop if there is much more of it than without faults.
func TestReference_JudgesPollsAtRest(t *testing.T) {
	run := func(faults kit.Plan, polls int) *trial {
		out, now := &trial{requests: map[string]int{}, plan: plan{Faults: faults}, faults: []happening{{}}}, time.Time{}
		r := newRecorder(out, func() time.Time { return now })
		r.begin(&simulate.Server{})
		poll := func(n int) {
			for i := range n {
				for _, path := range []string{"/a", fmt.Sprint("/", i%7)} {
					r.Asked(simulate.Request{Verb: "get", Kind: schema.GroupKind{Kind: "Pod"}, Path: path})
				}
			}
		}
		poll(200)
		r.touch() // what was before does not count
		poll(polls)
		all, _ := r.polls()
		out.polls = mostPolls(all)
		return out
	}
	faults := kit.Plan{kit.LoseResponse()}
	for _, c := range []struct{ with, without, want int }{{40, 0, 0}, {41, 0, 1}, {50, 15, 0}, {51, 15, 1}} {
		r := &reference{runs: []*trial{run(nil, c.without)}, view: &view{}}
		if got := r.judge(run(faults, c.with)); len(got) != c.want {
			t.Errorf("%d polls, and %d without the fault, are %v", c.with, c.without, got)
		}
	}
	for n, want := range map[int]int{40: 0, 41: 1} {
		if got := (&reference{}).judgePolls(run(nil, n)); len(got) != want {
			t.Errorf("%d polls without a fault are %v", n, got)
		}
	}
	in := &children{}
	for i, c := range []struct {
		n    int
		p    plan
		want bool
	}{{2, plan{}, false}, {5, plan{}, true}, {6, plan{}, false}, {12, plan{Faults: faults}, false}, {13, plan{Faults: faults}, true}} {
		if got := in.morePolls(map[string]int{"get Pod": c.n}, c.p); got != c.want {
			t.Errorf("%d: whether %d are more is %t", i, c.n, got)
		}
	}
}

// A program that ends while it is paused is started again when the pause is over, and after the end nothing is.
func TestLife_Pause(t *testing.T) {
	l := &life{in: &children{programs: [][]string{{"/absent"}}}, record: newRecorder(&trial{}, time.Now), over: make(chan struct{})}
	gone := make(chan struct{})
	close(gone)
	p := &process{&exec.Cmd{}, gone}
	l.mu.processes = []*process{p}
	l.Pause(0)
	l.work.Wait()
	if l.mu.broken == nil || l.mu.held {
		t.Error("it is not started again, or still paused")
	}
	l.end()
	l.mu.broken = nil
	l.Pause(0)
	l.Kill(0)
	l.work.Wait()
	if l.mu.broken != nil {
		t.Error("it is started after its end")
	}
}

// A definition with a webhook of conversions is served although there are no other webhooks.
func TestHooks_ServeConversionsAlone(t *testing.T) {
	client := map[string]any{"service": map[string]any{"namespace": "system", "name": "gates"}}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"kind": "CustomResourceDefinition", "spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": client}}},
	}}
	s, err := hooks{}.serve(t.TempDir(), []*unstructured.Unstructured{definition})
	if err != nil || s.address == "" || client["caBundle"] == nil {
		t.Errorf("it is at %q and is trusted by %v: %v", s.address, client, err)
	}
	if s, err = (hooks{wanted: true}).serve(t.TempDir(), nil); err != nil || !slices.Contains(s.places, "{webhook-port}") {
		t.Errorf("the program is told %q: %v", s.places, err)
	}
	if s, err = (hooks{}).serve(t.TempDir(), nil); err != nil || s.address != "" {
		t.Errorf("without webhooks they are at %q: %v", s.address, err)
	}
}

func TestCommand_ReplayIsACommand(t *testing.T) {
	c := Command{
		Args: []string{"./shop", "--port={port}", "it's"}, With: []string{"./other -v"}, Env: []string{"TOKEN=secret", "A"}, CRDs: []string{"config/crd"},
		Samples: []string{"a", "b"}, Webhooks: []string{"hooks"}, WebhookPort: 9443, Stubs: map[string]string{"B": "b.yaml", "A": "a.yaml"}, RestWithin: time.Minute,
	}
	want := `flyball doctor -plan x -crds config/crd -samples a -samples b -with './other -v' -webhooks hooks -webhook-port 9443` +
		` -stub A=a.yaml -stub B=b.yaml -env TOKEN -env A -rest 1m0s -- ./shop '--port={port}' 'it'\''s'`
	if got := c.replay("x"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	c = Command{Args: []string{"make", "test"}, Suite: true, Assets: "bin"}
	if got, want := c.replay("x"), "flyball doctor -plan x -suite -assets bin -- make test"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A variable without a value has that of the environment.
func TestValued_TakesValuesFromTheEnvironment(t *testing.T) {
	t.Setenv("TOKEN", "a=b")
	if got, err := valued([]string{"A=", "TOKEN"}); err != nil || !slices.Equal(got, []string{"A=", "TOKEN=a=b"}) {
		t.Errorf("the variables are %q, %v", got, err)
	}
	if _, err := valued([]string{"DOCTOR_TEST_ABSENT"}); err == nil || !strings.Contains(err.Error(), "write DOCTOR_TEST_ABSENT=VALUE") {
		t.Errorf("without a value it returns %v", err)
	}
}

func TestLife_ComplaintsNameTheUsersLines(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		want   []wrong
	}{
		"nothing": {"I1130 main.go:1] a panic: is only mentioned\n", nil},
		"panic": {`started
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation]

goroutine 57 [running]:
k8s.io/apimachinery/pkg/util/runtime.HandleCrash({0x0, 0x0, 0x0})
	/mod/k8s.io/apimachinery/pkg/util/runtime/runtime.go:89 +0x1d
panic({0x1, 0x2})
	/go/src/runtime/panic.go:785 +0x132
example.com/shop/internal.(*Reconciler).size(...)
	/src/shop/internal/size.go:12
example.com/shop/internal.(*Reconciler).Reconcile(0xc000, {0x1, 0x2})
	/src/shop/internal/reconciler.go:81 +0x4a
`, []wrong{{"panic", "panic: runtime error: invalid memory address or nil pointer dereference at internal/size.go:12 (internal.(*Reconciler).size)"}}},
		"race": {`WARNING: DATA RACE
Write at 0x00c0001 by goroutine 9:
  runtime.mapassign_faststr()
      /go/src/runtime/map.go:1 +0x0
  main.(*shop).count()
      /src/shop/main.go:30 +0x84
  main.main.func1()
      /src/shop/main.go:20 +0x2c

Previous read at 0x00c0001 by goroutine 8:
  main.(*shop).show()
      /src/shop/main.go:40 +0x5a

Goroutine 9 (running) created at:
  main.main()
      /src/shop/main.go:19 +0x10
`, []wrong{{"data race", "WARNING: DATA RACE at shop/main.go:30 (main.(*shop).count), and at shop/main.go:40 (main.(*shop).show)"}}},
	} {
		l := &life{}
		if _, err := io.WriteString(&l.output, c.output); err != nil {
			t.Fatal(err)
		}
		got := l.output.complaints()
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
