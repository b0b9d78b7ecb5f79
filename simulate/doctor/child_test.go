// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/localserver"
	"github.com/flyball-dev/flyball/simulate/doctor"
)

// gatesOf returns this test program as an operator of Gates that behaves in some way.
func gatesOf(t *testing.T, how string, env ...string) doctor.Command {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Command{
		Args: []string{program}, Env: append(env, gatesAre+"="+how), CRDs: []string{"testdata/gates.yaml"}, Samples: []string{"testdata/gate.yaml"},
		Budget: time.Hour, Parallel: 2,
	}
}

func examine(t *testing.T, c doctor.Command) *doctor.Report {
	t.Helper()
	r, err := c.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Text())
	return r
}

func TestCommand_FindsAPlantedBug(t *testing.T) {
	t.Parallel()
	c := gatesOf(t, "second with the first")
	c.First = true
	for _, f := range examine(t, c).Findings {
		if f.Class == doctor.OtherEnd && f.Kind == "Secret" && f.Pattern == doctor.Intermediate && f.Repeated == f.Tries && strings.HasSuffix(f.Line, "/gates") {
			return
		}
	}
	t.Error("no finding says that the Secret is missing after a crash, is repeated by each repetition, and names the user agent")
}

// notJudged returns what is not judged, but for what is not repeatable: a machine with other work may be late by chance.
func notJudged(r *doctor.Report) []string {
	return slices.DeleteFunc(r.Skipped, func(text string) bool { return strings.HasPrefix(text, "not repeatable: ") })
}

// A right program has no finding although it polls, has random names, holds a Lease when it is killed, ignores SIGTERM,
// has a port that no two processes can share, and has forked. Nothing of it is left.
func TestCommand_ARightProgramHasNoFinding(t *testing.T) {
	t.Parallel()
	reports, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var forked sync.WaitGroup
	forked.Go(func() {
		for {
			conn, err := reports.Accept()
			if err != nil {
				return
			}
			forked.Go(func() {
				_, _ = io.ReadAll(conn) // until the other end is gone
				_ = conn.Close()
			})
		}
	})
	address, err := localserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	c := gatesOf(t, "polls, random, elected, stubborn, forks", reportTo+"="+reports.Addr().String(), listenAt+"="+address)
	c.MostPlans = 8
	r := examine(t, c)
	if skipped := notJudged(r); len(r.Findings) > 0 || len(skipped) > 0 || r.Ran != c.MostPlans {
		t.Errorf("%d findings, %d of %d plans run, not judged: %v", len(r.Findings), r.Ran, c.MostPlans, skipped)
	}
	_ = reports.Close()
	gone := make(chan struct{})
	go func() {
		forked.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("a process that the program has forked is still there")
	}
}

func TestCommand_SaysWhyItCannotExamine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	absent := gatesOf(t, "right")
	absent.Args = []string{filepath.Join(t.TempDir(), "absent")}
	lone := gatesOf(t, "right")
	lone.With = []string{absent.Args[0] + "-too --flag"}
	for want, c := range map[string]doctor.Command{
		"ends by itself again and again, the last time with exit status 1; its last output:\nconnect to the database: no such host": gatesOf(t, "dies"),
		"port is in use; write {port}":                         gatesOf(t, "right", listenAt+"="+taken.Addr().String()),
		"start the program: fork/exec " + absent.Args[0] + ":": absent,
		absent.Args[0] + "-too: no such file":                  lone,
	} {
		if _, err := c.Examine(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it returns %v, want %q", err, want)
		}
	}
}

// A loop that client-go's rate limit slows down is found.
func TestCommand_FindsAThrottledLoop(t *testing.T) {
	t.Parallel()
	c := gatesOf(t, "loops throttled")
	c.First = true
	isLoop := func(f *doctor.Finding) bool {
		return f.Class == doctor.Restless && strings.Contains(f.Text, "requests to get ConfigMap for the same")
	}
	if r := examine(t, c); !slices.ContainsFunc(r.Findings, isLoop) {
		t.Errorf("the findings are %v, want one of the loop", r.Findings)
	}
}

// Samples that the server refuses are said to be refused, and no plan is run.
func TestCommand_SaysWhichSamplesAreRefused(t *testing.T) {
	t.Parallel()
	c := gatesOf(t, "right")
	c.Samples = []string{"testdata/sample.yaml"} // of a kind that is not served
	r := examine(t, c)
	if r.Ran > 0 || len(r.Skipped) == 0 || !strings.Contains(r.Skipped[0], "create the sample Shop default/corner") {
		t.Errorf("%d plans are run, not judged: %v", r.Ran, r.Skipped)
	}
}

// What keeps moving is named, and no end states are compared.
func TestCommand_SaysWhatDoesNotRest(t *testing.T) {
	t.Parallel()
	c := gatesOf(t, "restless")
	c.RestWithin = 20 * time.Second
	r := examine(t, c)
	if len(r.Findings) != 1 || r.Findings[0].Class != doctor.Restless || !strings.Contains(r.Findings[0].Text, "ConfigMap default/north (data.count)") || r.Ran > 0 {
		t.Errorf("%d plans are run, and the findings are %v; want one that names the ConfigMap", r.Ran, r.Findings)
	}
}

// The server calls the webhooks that the program serves, and trusts the certificate that doctor has made for it.
func TestCommand_CallsTheWebhooksOfTheProgram(t *testing.T) {
	t.Parallel()
	c := gatesOf(t, "closed")
	c.Args, c.Webhooks = append(c.Args, "{webhook-port}", "{webhook-certs}"), []string{"testdata/webhook.yaml"}
	r := examine(t, c)
	if r.Ran > 0 || len(r.Skipped) == 0 || !strings.Contains(r.Skipped[0], "gates are closed at /validate") {
		t.Errorf("%d plans are run, not judged: %v; want the webhook's refusal", r.Ran, r.Skipped)
	}
}

// writes reports whether the program has carried out a write.
func writes(r *doctor.Report, write string) bool {
	return slices.ContainsFunc(r.Coverage, func(c doctor.Covered) bool { return c.What == "write "+write })
}

// Two programs are one operator: they are killed and started together, and what each does counts.
func TestCommand_SeveralBinaries(t *testing.T) {
	t.Parallel()
	c := gatesOf(t, "right")
	c.With, c.Args, c.MostPlans = []string{c.Args[0] + " second-half"}, append(c.Args, "first-half"), 2
	r := examine(t, c)
	if skipped := notJudged(r); len(r.Findings)+len(skipped) > 0 || r.Ran != c.MostPlans || !writes(r, "create ConfigMap") || !writes(r, "create Secret") {
		t.Errorf("%d findings in %d plans, not judged: %v, tried: %v; want no finding, and the writes of both", len(r.Findings), r.Ran, skipped, r.Coverage)
	}
}

// A program that waits for another controller goes on with the status of a stub. One that the server refuses is not tried
// again and again, and the report says so.
func TestCommand_StubsAnotherController(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{"{ready: 1}": false, "{ready: soon}": true} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			status := filepath.Join(t.TempDir(), "status.yaml")
			if err := os.WriteFile(status, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c := gatesOf(t, "shop")
			c.CRDs, c.Stubs, c.MostPlans = append(c.CRDs, "testdata/crd.yaml"), map[string]string{"Shop.doctor.example.dev": status}, 2
			r := examine(t, c)
			said := slices.ContainsFunc(r.Skipped, func(s string) bool {
				return strings.Contains(s, "the server refuses that of the stub") && strings.Contains(s, "status.ready")
			})
			if len(r.Findings) > 0 || r.Ran != c.MostPlans || said != refused || writes(r, "create Secret") == refused {
				t.Errorf("%d findings in %d plans, not judged: %v, tried: %v", len(r.Findings), r.Ran, r.Skipped, r.Coverage)
			}
		})
	}
}

func TestCommand_SaysWhatIsWrongWithAStub(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{empty: "there is no field", "testdata/absent.yaml": "no such file"} {
		c := gatesOf(t, "right")
		c.Stubs = map[string]string{"Certificate.cert-manager.io": name}
		if _, err := c.Examine(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the stub of Certificate.cert-manager.io") {
			t.Errorf("the stub %s: %v, want %q", name, err, want)
		}
	}
}

// What was found until an interrupt is written, also before a plan has been run.
func TestCommand_AnInterruptLeavesAReport(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, plan := range []string{"", "5d1c0e77"} {
		c := gatesOf(t, "right")
		c.Out, c.Plan = t.TempDir(), plan
		r, err := c.Examine(ctx)
		if err != nil || r == nil || len(r.Skipped) == 0 && plan == "" {
			t.Errorf("it returns %v and %v", r, err)
		}
		if _, err := os.Stat(filepath.Join(c.Out, "doctor.json")); err != nil {
			t.Error(err)
		}
	}
}
