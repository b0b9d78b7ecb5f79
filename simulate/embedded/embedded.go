// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/simulate"
)

// Options of a cluster. The zero value has the built-in kinds, and persists nothing.
type Options struct {
	// CRDs to apply first, as returned by envtest.ParseCRDs.
	CRDs []runtime.Object
	// Files to write beside the kubeconfig, by name: samples to apply.
	Files map[string][]byte
	// Data is a directory that persists the objects between runs; the kubeconfig and
	// Files are written there too, and removed at the end. Empty: a temporary
	// directory, which is removed.
	Data string
	// Name of the program: without Data, kubeconfig and Files are at the same place at each
	// start, in the user's cache directory, so that a shell stays set up. A second process of
	// the name uses a temporary directory. Empty: each does.
	Name string
	// Kubeconfig is where to write the kubeconfig, instead of into Data or the temporary
	// directory. It is removed at the end. An existing file is replaced.
	Kubeconfig string
	// Webhooks answers the requests of the server to any webhook, admission or conversion,
	// by their paths, without a network. A webhook.Server does, without being run. Nil: they
	// are called over the network, and Services have no address.
	Webhooks http.Handler
	// Manifests is YAML of how the program is deployed. With WebhookAddress its Namespaces and
	// webhook configurations are applied after CRDs. Without it, configurations that Data has
	// kept are deleted, also with Webhooks: a handler may answer conversions alone, and all
	// else would be denied.
	Manifests []byte
	// WebhookAddress is where webhooks are called, over TLS, whatever their Services: that of
	// the program's own webhook server. Empty: as Webhooks says.
	WebhookAddress string
	// Listen are further options of the server. Its Data is ignored.
	Listen simulate.ListenOptions
	// NoActors leaves out what acts as controllers and kubelets: namespaces that are deleted
	// stay, nothing is garbage-collected, and Deployments get no Pods.
	NoActors bool
}

// Cluster describes how to reach the server while it runs.
type Cluster struct {
	// Config for Go clients.
	Config *rest.Config
	// Kubeconfig is the path of a kubeconfig file for kubectl.
	Kubeconfig string
	// Dir is the directory of Kubeconfig and Options.Files. Both paths are absolute.
	Dir string
	// Server is the server itself, to cause faults and to inspect it.
	Server *simulate.Server
}

// Run starts a cluster, calls operate, and returns when both have ended. The end of ctx
// stops only operate: the server serves until operate returns. If the server fails, it
// cancels operate's context and Run returns the server's error; otherwise Run returns
// the error of operate.
func Run(ctx context.Context, opts Options, operate func(ctx context.Context, c Cluster) error) (err error) {
	opts.Listen.Data = opts.Data
	switch {
	case opts.WebhookAddress != "":
		opts.Listen.DialWebhook = func(ctx context.Context, _ *url.URL) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", opts.WebhookAddress)
		}
	case opts.Webhooks != nil:
		opts.Listen.WebhookTransport = inProcess{opts.Webhooks}
	}
	l, err := simulate.Listen(opts.Listen)
	if err != nil {
		return err
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	ctx, stop := context.WithCancel(ctx)
	var server sync.WaitGroup
	var lost error
	server.Go(func() {
		defer stop()
		lost = l.Run(serving)
	})
	server.Go(func() {
		if opts.NoActors {
			return
		}
		// the options are valid, so it does not fail
		_ = l.Server().RunActors(serving, simulate.Actors{GarbageCollector: true, Namespaces: true, Workloads: true})
	})
	defer func() {
		end()
		server.Wait()
		err = errors.Join(lost, err)
	}()
	c, remove, err := layOut(l, opts)
	defer remove()
	if err != nil {
		return err
	}
	if err := populate(ctx, l.Config(), opts); err != nil {
		return err
	}
	return operate(ctx, c)
}

// layOut writes the kubeconfig and Options.Files. remove deletes them.
func layOut(l *simulate.Loopback, opts Options) (c Cluster, remove func(), err error) {
	c = Cluster{Config: l.Config(), Dir: opts.Data, Server: l.Server()}
	var written []string
	temporary, release := "", func() {}
	remove = func() {
		for _, path := range written {
			_ = os.Remove(path)
		}
		if temporary != "" {
			_ = os.Remove(temporary)
		}
		release()
	}
	if c.Dir == "" && opts.Kubeconfig != "" && len(opts.Files) == 0 {
		c.Dir = filepath.Dir(opts.Kubeconfig)
	}
	if c.Dir == "" && opts.Name != "" {
		c.Dir, release = place(opts.Name)
	}
	if c.Dir == "" {
		if temporary, err = os.MkdirTemp("", "flyball-"); err != nil {
			return c, remove, fmt.Errorf("make a directory for the kubeconfig: %w; TMPDIR names another place", err)
		}
		c.Dir = temporary
	}
	// A user may run the printed commands in another directory.
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return c, remove, fmt.Errorf("find the directory of the kubeconfig: %w", err)
	}
	if c.Kubeconfig, err = filepath.Abs(cmp.Or(opts.Kubeconfig, filepath.Join(c.Dir, "kubeconfig"))); err != nil {
		return c, remove, fmt.Errorf("find the directory of the kubeconfig: %w", err)
	}
	if err := l.WriteKubeconfig(c.Kubeconfig); err != nil {
		return c, remove, err
	}
	written = append(written, c.Kubeconfig)
	for name, content := range opts.Files {
		path := filepath.Join(c.Dir, filepath.Base(name))
		written = append(written, path)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return c, remove, err
		}
	}
	return c, remove, nil
}
