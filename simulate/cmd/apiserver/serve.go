// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/internal/commandline"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/embedded"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

const usage = `apiserver runs a simulated Kubernetes API server and prints the path of its kubeconfig.

  apiserver [flags]        serve until Ctrl-C or SIGTERM
  apiserver install DIR    write DIR/etcd and DIR/kube-apiserver; suites with envtest run on
                           the simulated server with KUBEBUILDER_ASSETS=DIR

Flags:
`

// settings are the flags of the server.
type settings struct {
	kubeconfig, crds, data, audit, bind, control string
	port                                         int
	actors, rbac                                 bool
	rates
}

func (s *settings) parse(args []string, log io.Writer) error {
	set := flag.NewFlagSet("apiserver", flag.ContinueOnError)
	set.SetOutput(log)
	set.Usage = func() {
		fmt.Fprint(log, usage)
		set.PrintDefaults()
	}
	set.StringVar(&s.kubeconfig, "kubeconfig", "", "write the kubeconfig to this `file`; it is removed at the end (default: a new file in the temporary directory, or in that of -data)")
	set.StringVar(&s.crds, "crds", "", "install the CustomResourceDefinitions in this `directory` or file")
	set.StringVar(&s.data, "data", "", "keep the objects in this `directory`, so that they are there after a restart (default: they are lost at the end)")
	set.StringVar(&s.audit, "audit", "", "append a line of JSON to this `file` for each request: time, user, verb, uri and code")
	set.IntVar(&s.port, "port", 0, "listen on this `port` (default: any that is free)")
	set.StringVar(&s.bind, "bind", "", "listen on this `address`, which other machines can reach (default: 127.0.0.1)")
	set.StringVar(&s.control, "control", "", "take aimed faults at this `address` of this machine, such as 127.0.0.1:0; its URL is printed to the standard error")
	set.BoolVar(&s.actors, "actors", true, "act as the controllers and kubelets: empty deleted namespaces, collect garbage, run Deployments and other workloads")
	set.BoolVar(&s.rbac, "rbac", false, "let Roles and ClusterRoles decide what users may do (default: everyone may do everything); the kubeconfig's user may do everything")
	s.flags(set)
	if err := commandline.Parse(set, args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if s.port < 0 || s.port > 65535 {
		return fmt.Errorf("-port=%d: write a number between 1 and 65535, or 0 for any port that is free", s.port)
	}
	if err := s.valid(); err != nil {
		return err
	}
	if s.seed != 0 && !s.any() {
		return errNoFault
	}
	for s.seed == 0 {
		s.seed = rand.Uint64()
	}
	return free(s.kubeconfig)
}

// free returns an error if the kubeconfig of another cluster would be overwritten.
func free(kubeconfig string) error {
	if kubeconfig == "" {
		return nil
	}
	text, err := os.ReadFile(kubeconfig)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("-kubeconfig: %w; name a file that you can write to", err)
	}
	content, err := clientcmd.Load(text)
	if err != nil || len(content.Clusters) != 1 || content.Clusters["simulated"] == nil {
		return fmt.Errorf("-kubeconfig: %s exists and is not that of a simulated server, so it is not overwritten; name another file", kubeconfig)
	}
	return nil
}

// serve runs the server until ctx ends.
func serve(ctx context.Context, args []string, out, log io.Writer) (err error) {
	var s settings
	if err := s.parse(args, log); err != nil {
		return err
	}
	var crds definitions
	if s.crds != "" {
		if crds, err = readDefinitions(s.crds); err != nil {
			return err
		}
	}
	requests := &audit{}
	if s.audit != "" {
		if requests, err = openAudit(s.audit); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, requests.close()) }()
	faults := newChance(s.rates, requests)
	opts := embedded.Options{CRDs: crds.crds, Data: s.data, Kubeconfig: s.kubeconfig, NoActors: !s.actors}
	opts.Listen = simulate.ListenOptions{AnyAddress: s.bind != "", Logger: textlog.New(log, 0)}
	opts.Listen.Address = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
	if s.bind != "" {
		opts.Listen.Address = net.JoinHostPort(s.bind, strconv.Itoa(s.port))
	}
	opts.Listen.Authorization = s.rbac
	aimed := aim.New(faults, nil, nil)
	if s.any() || s.audit != "" || s.control != "" {
		opts.Listen.Tracer = aimed
	}
	err = embedded.Run(ctx, opts, func(ctx context.Context, c embedded.Cluster) error {
		take, err := s.takeFaults(aimed, c.Server, log)
		if err != nil {
			return err
		}
		if err := s.announce(c, out, log); err != nil {
			return err
		}
		var disturbance sync.WaitGroup
		defer disturbance.Wait()
		disturbance.Go(func() { faults.disturb(ctx, c.Server) })
		disturbance.Go(func() { take(ctx) })
		faults.begin(c.Server)
		<-ctx.Done()
		return nil
	})
	return explain(ctx, err, crds)
}

// announce says where the server is. Only the path of the kubeconfig goes to out.
func (s *settings) announce(c embedded.Cluster, out, log io.Writer) error {
	if s.bind != "" {
		fmt.Fprintf(log, "warning: other machines can reach the simulated API server at %s; whoever has its kubeconfig or a token can read and change everything in it\n", s.bind)
	}
	if s.any() {
		fmt.Fprintf(log, "faults are drawn from -seed=%d\n", s.seed)
	}
	fmt.Fprintf(log, "the simulated API server answers at %s until Ctrl-C; its kubeconfig is\n", c.Config.Host)
	if _, err := fmt.Fprintln(out, c.Kubeconfig); err != nil {
		return fmt.Errorf("print the path of the kubeconfig: %w", err)
	}
	return nil
}

// explain adds to an error where a refused CRD stands, and drops that of an early end.
func explain(ctx context.Context, err error, crds definitions) error {
	if refused := (*embedded.DefinitionError)(nil); errors.As(err, &refused) && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", crds.where[refused.Index], err)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
