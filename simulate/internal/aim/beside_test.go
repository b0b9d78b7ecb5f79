// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package aim_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

// beside returns a server whose program has a plan beside it.
func beside(t *testing.T, dir string, p aim.Plan) (*aim.Beside, *simulate.Server) {
	t.Helper()
	text, err := json.Marshal(p)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, aim.PlanFile), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := aim.FindPlan(filepath.Join(dir, "kube-apiserver"))
	if err != nil || b == nil {
		t.Fatalf("the plan is not found: %v", err)
	}
	t.Cleanup(b.Close)
	server := simulate.New(simulate.Options{Tracer: b})
	b.Begin(server)
	return b, server
}

// The second server has the fault, and both write traces.
func TestFindPlan_FaultsAreThoseOfOneServer(t *testing.T) {
	dir := t.TempDir()
	if b, err := aim.FindPlan(filepath.Join(dir, "kube-apiserver")); b != nil || err != nil {
		t.Fatalf("without a plan it is %v, %v, want nothing", b, err)
	}
	p := aim.Plan{Server: 2, Faults: []aim.Fault{{Fault: aim.Reject, Before: "create ConfigMap"}, {Fault: aim.Delay, Before: "create ConfigMap", Nth: 2, For: aim.Duration(time.Millisecond)}}}
	_, first := beside(t, dir, p)
	_, second := beside(t, dir, p)
	var codes []int
	for _, server := range []*simulate.Server{first, second, second} {
		codes = append(codes, create(t, server, "a", "program"))
	}
	if want := []int{201, 500, 201}; !equal(codes, want) {
		t.Errorf("the answers are %v, want %v", codes, want)
	}
	traces, err := aim.Traces(dir)
	if err != nil || len(traces) != 2 {
		t.Fatalf("there are %d traces, %v, want 2", len(traces), err)
	}
	var seen []string
	for _, e := range traces[1] {
		switch {
		case e.Asked != nil:
			seen = append(seen, e.Asked.Verb+" "+e.Asked.Kind.Kind)
		case e.Fault != "":
			seen = append(seen, e.Fault)
		case e.Stored != nil:
			seen = append(seen, "stored "+e.Stored.Key.Name)
		case e.Answering > 0:
			seen = append(seen, "answering")
		case e.Answered > 0:
			seen = append(seen, "answered")
		}
	}
	want := "create ConfigMap, reject before write 1 of create ConfigMap, answered, " +
		"create ConfigMap, delay for 1ms before write 2 of create ConfigMap, stored a, answering, answered"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("the trace is\n%s, want\n%s", got, want)
	}
}

// A write is the user's if its goroutine runs a test.
func TestBeside_TellsTheSpecFromTheProgram(t *testing.T) {
	dir, err := os.MkdirTemp("", "aim") // a short path, as sockets need
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	socket := filepath.Join(dir, "stacks")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = l.Close() }()
	const (
		once  = "goroutine 3 [select]:\nnet/http.(*Client).do(0xc0)\nexample.com/client.Create[...](0xc0)\nexample.com/op.(*R).Reconcile(0xc0)\n\n"
		twice = "goroutine 2 [select]:\nnet/http.(*Client).do(0xc0)\nexample.com/client.Create(0xc0)\ntesting.tRunner(0xc0)\n\n" + once
	)
	answers := []string{
		"goroutine 1 [running]:\nmain.main()\n\n" + "goroutine 2 [select]:\nnet/http.(*Client).do(0xc0)\nexample.com/client.Create(0xc0)\ntesting.tRunner(0xc0)\n\n" +
			"goroutine 3 [select]:\nnet/http.(*Client).do(0xc0)\nexample.com/client.Get(0xc0)\n",
		twice, once, // the spec's goroutine is on its way out with its answer
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, answer := range answers {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(answer))
			_ = c.Close()
		}
	}()
	_, server := beside(t, dir, aim.Plan{Server: 1, Stacks: socket, Faults: []aim.Fault{{Fault: aim.Reject, Before: "create ConfigMap"}}})
	if got := []int{create(t, server, "spec", "x"), create(t, server, "program", "x")}; !equal(got, []int{201, 500}) {
		t.Errorf("the answers are %v, want that only the program's write is refused", got)
	}
	_ = l.Close() // nobody asks any more
	<-done
	traces, err := aim.Traces(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range traces[0] {
		if e.Asked != nil && (e.Asked.Client == "user") != strings.Contains(e.Stack, "testing.tRunner") {
			t.Errorf("the sender of %+v is not that of its stack %q", e.Asked, e.Stack)
		}
	}
}
