// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package processgroup_test

import (
	"bufio"
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/hack/internal/processgroup"
)

// A shell that ignores the interrupt has started a program that ignores it, too. Both end.
func TestLead_NoProcessStays(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "sh", "-c", `trap "" INT; sleep 600 & echo $!; wait`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	processgroup.Lead(cmd, 10*time.Millisecond)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("the shell ended without an error, want that it was killed")
	}
	processgroup.Kill(cmd)
	for range 1000 { // until its new parent has waited for it
		if syscall.Kill(child, 0) != nil || zombie(child) {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Errorf("process %d, which the shell had started, is still there", child)
}

// zombie reports whether a process has ended and nobody has waited for it.
func zombie(pid int) bool {
	state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}
