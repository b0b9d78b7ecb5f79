// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Replicas shows how replicas share the objects of an operator: it starts an API server and
// four processes of an operator, prints which process holds which objects, kills one, starts it
// anew, and checks afterwards that each write was made by the process that held the object.
//
//	main.go      the flags and the API server
//	story.go     what happens, and the table
//	observer.go  who holds what, from the Leases and objects that the server shows
//	process.go   the processes, which end with this one
//	operator.go  the operator, in each of them
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/embedded"
)

func main() {
	if name := os.Getenv(replicaName); name != "" {
		exitOn(operate(name))
		return
	}
	var s story
	flag.IntVar(&s.replicas, "replicas", 4, "`number` of processes that share the objects")
	flag.IntVar(&s.objects, "objects", 200, "`number` of objects")
	flag.DurationVar(&s.pause, "pause", 5*time.Second, "`time` before each thing that happens")
	onReal := flag.Bool("real", false, "use etcd and kube-apiserver, which the first use builds into your cache")
	exitOn(manager.ParseFlags(flag.CommandLine, os.Args[1:]))
	ctx := manager.SignalContext()
	err := s.tell(ctx, *onReal)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted; all processes have ended")
	}
	exitOn(err)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "replicas:", manager.Printable(err))
		os.Exit(1)
	}
}

// tell runs the story on a simulated API server, or on a real one.
func (s story) tell(ctx context.Context, onReal bool) (err error) {
	if s.replicas < 2 || s.replicas > shardCount/4 || s.objects < 1 {
		return fmt.Errorf("%d replicas and %d objects: give -replicas from 2 to %d, and an object or more", s.replicas, s.objects, shardCount/4)
	}
	if s.out == nil {
		s.out = os.Stdout
	}
	if !onReal {
		return embedded.Run(ctx, embedded.Options{NoActors: true}, func(ctx context.Context, c embedded.Cluster) error {
			return s.run(ctx, c.Config, c.Kubeconfig)
		})
	}
	fmt.Fprintln(s.out, "Starting etcd and kube-apiserver. The first time, they are built, which takes minutes.")
	env, err := envtest.Start(ctx, envtest.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	return s.run(ctx, env.Config(), env.Kubeconfig())
}
