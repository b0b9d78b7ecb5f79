// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/reconcile"
)

// The test runs itself in another process, which must not survive.
func TestController_CrashOnPanicEndsTheProcess(t *testing.T) {
	const inside = "FLYBALL_TEST_CRASH"
	if os.Getenv(inside) != "" {
		fed := make(keys, 1)
		fed <- "a"
		c := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
			panic("boom as asked")
		}, reconcile.KeyedOptions[string]{CrashOnPanic: true})
		c.Watch(fed.source())
		_ = c.Run(t.Context())
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestController_CrashOnPanicEndsTheProcess$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: boom as asked") {
		t.Errorf("the process ended with %v and wrote:\n%s\nwant the panic to end it", err, out)
	}
}
