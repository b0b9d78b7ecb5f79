// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// exeSuffix is what the names of programs end in.
var exeSuffix = map[string]string{"windows": ".exe"}[runtime.GOOS]

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	defer context.AfterFunc(ctx, stop)()
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), exeSuffix)
	err := run(ctx, name, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage): // the flag package has said why
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

var errUsage = errors.New("the arguments are wrong")

// parentEvery is how often a stand-in looks for its parent.
const parentEvery = 500 * time.Millisecond

// endWithParent calls end when the process that has started this one is gone, such as a suite that has panicked.
func endWithParent(ctx context.Context, end func(), parent int) {
	time.AfterFunc(parentEvery, func() {
		switch {
		case ctx.Err() != nil:
		case os.Getppid() != parent:
			end()
		default:
			endWithParent(ctx, end, parent)
		}
	})
}

// run is main under a name, with explicit arguments and outputs.
func run(ctx context.Context, name string, args []string, out, log io.Writer) error {
	switch name {
	case etcdName, kubeAPIServerName:
		ctx, end := context.WithCancel(ctx)
		defer end()
		endWithParent(ctx, end, os.Getppid())
		if name == etcdName {
			return etcd(ctx, args, out, log)
		}
		return kubeAPIServer(ctx, args, out, log)
	}
	if len(args) > 0 && args[0] == "install" {
		return install(args[1:], out)
	}
	return serve(ctx, args, out, log)
}
