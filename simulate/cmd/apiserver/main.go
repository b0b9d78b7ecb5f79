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

// run is main under a name, with explicit arguments and outputs.
func run(ctx context.Context, name string, args []string, out, log io.Writer) error {
	switch name {
	case etcdName:
		return etcd(ctx, args, out, log)
	case kubeAPIServerName:
		return kubeAPIServer(ctx, args, out, log)
	}
	if len(args) > 0 && args[0] == "install" {
		return install(args[1:], out)
	}
	return serve(ctx, args, out, log)
}
