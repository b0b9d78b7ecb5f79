// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package manager_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/flyball-dev/flyball/manager"
)

// signalled marks the process to which the test below sends signals.
const signalled = "FLYBALL_TEST_SIGNALLED"

func TestSignalContext_FirstSignalEndsItTheSecondTheProcess(t *testing.T) {
	if os.Getenv(signalled) != "" {
		ctx := manager.SignalContext()
		fmt.Println("ready")
		<-ctx.Done()
		fmt.Println(context.Cause(ctx))
		select {}
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), signalled+"=1")
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for _, want := range []string{"ready", sig.String()} {
			if !lines.Scan() || !strings.Contains(lines.Text(), want) {
				t.Errorf("%v: the program printed %q, want %q", sig, lines.Text(), want)
			}
			must(t, cmd.Process.Signal(sig))
		}
		err = cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
			t.Errorf("%v twice: the program ended with %v, want exit status 1", sig, err)
		}
	}
}
