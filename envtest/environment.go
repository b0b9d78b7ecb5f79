// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/keypair"
)

// defaultStartTimeout allows for a loaded machine; a server usually starts in two seconds.
const defaultStartTimeout = 2 * time.Minute

// Options of an Environment. The zero value starts an empty control plane.
type Options struct {
	// Assets is a directory with etcd, kube-apiserver and kubectl. Zero: see Binaries.
	Assets string

	// Dir is the parent of the environment's own directory, which Stop removes. Zero: os.TempDir().
	Dir string

	// CRDs are files or directories with CustomResourceDefinitions to install, see InstallCRDs.
	CRDs []string

	// CRDObjects are CustomResourceDefinitions to install, see InstallCRDObjects; ParseCRDs reads them from other sources.
	CRDObjects []runtime.Object

	// Webhooks are files or directories with MutatingWebhookConfigurations and ValidatingWebhookConfigurations to install,
	// see InstallWebhooks.
	Webhooks []string

	// APIServerArgs sets flags of kube-apiserver, named without dashes. The values replace those of the environment; an
	// empty list removes the flag. Zero: the environment's flags.
	APIServerArgs map[string][]string

	// EtcdArgs sets flags of etcd, like APIServerArgs.
	EtcdArgs map[string][]string

	// StartTimeout bounds the wait for each server, for the CRDs and for the webhooks, without building binaries. Zero: two
	// minutes.
	StartTimeout time.Duration

	// Output receives the progress of building missing binaries. Zero: os.Stderr.
	Output io.Writer
}

// An Environment is a running control plane. Start creates it, Stop ends it. It is safe for concurrent use; KillAPIServer,
// StartAPIServer and Stop exclude each other.
type Environment struct {
	opts     Options
	assets   string // directory of the binaries
	dir      string // for all files of the environment
	guard    *guard
	users    *keypair.Authority // of the API server and its clients
	storage  *keypair.Authority // of etcd and its clients
	api      endpoint
	etcd     endpoint
	port     int // of the API server, unchanged by restarts
	admin    *rest.Config
	adminCfg string // path of the administrator's kubeconfig
	webhooks WebhookServing

	// turn has an element while a server is started or stopped; it guards the fields below.
	turn      chan struct{}
	stopped   bool
	etcdProc  *process
	apiServer *process // nil while killed

	mu struct {
		sync.Mutex
		crds []*unstructured.Unstructured // installed here; they must be served again after a restart
	}
}

// Start starts etcd and kube-apiserver, installs the CRDs and webhooks of opts, and returns when all of them are served. It
// builds missing binaries first, see Binaries. ctx bounds only the start. On an error nothing is left.
func Start(ctx context.Context, opts Options) (*Environment, error) {
	opts.StartTimeout = cmp.Or(opts.StartTimeout, defaultStartTimeout)
	crds, err := readCRDs(opts.CRDs)
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	objects, err := crdsOf(opts.CRDObjects)
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	webhooks, err := readWebhooks(opts.Webhooks)
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	assets, err := Binaries(ctx, BinariesOptions{Assets: opts.Assets, Output: opts.Output})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(opts.Dir, "flyball-envtest-")
	if err != nil {
		return nil, fmt.Errorf("make the directory of the control plane: %w", err)
	}
	guard, err := startGuard(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	e := &Environment{opts: opts, assets: assets, dir: dir, guard: guard, turn: make(chan struct{}, 1)}
	if err := e.start(ctx, append(crds, objects...), webhooks); err != nil {
		return nil, errors.Join(fmt.Errorf("start the control plane: %w", err), e.Stop())
	}
	return e, nil
}

func (e *Environment) start(ctx context.Context, crds, webhooks []*unstructured.Unstructured) error {
	now := time.Now()
	if err := e.writeIdentities(now); err != nil {
		return err
	}
	if err := e.writeWebhookServing(now); err != nil {
		return err
	}
	if err := e.startEtcd(ctx); err != nil {
		return err
	}
	if err := e.startAPIServer(ctx); err != nil {
		return err
	}
	if err := e.installCRDs(ctx, crds); err != nil {
		return err
	}
	return e.installWebhooks(ctx, webhooks)
}

// writeIdentities creates the authorities and writes the files that the servers need.
func (e *Environment) writeIdentities(now time.Time) (err error) {
	if e.users, err = keypair.NewAuthority(now, "envtest"); err != nil {
		return err
	}
	if e.storage, err = keypair.NewAuthority(now, "envtest"); err != nil {
		return err
	}
	signing, err := keypair.SigningKey()
	if err != nil {
		return err
	}
	apiServer, err := e.users.Server(now)
	if err != nil {
		return err
	}
	etcdServer, err := e.storage.Server(now)
	if err != nil {
		return err
	}
	etcdClient, err := e.storage.Client(now, "envtest")
	if err != nil {
		return err
	}
	if e.etcd.http, err = newHTTPClient(e.storage, etcdClient); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"users-ca.crt":         e.users.PEM,
		"kube-apiserver.crt":   apiServer.Cert,
		"kube-apiserver.key":   apiServer.Key,
		"service-accounts.key": signing,
		"etcd-ca.crt":          e.storage.PEM,
		"etcd.crt":             etcdServer.Cert,
		"etcd.key":             etcdServer.Key,
		"etcd-client.crt":      etcdClient.Cert,
		"etcd-client.key":      etcdClient.Key,
	} {
		if err := os.WriteFile(e.path(name), content, 0o600); err != nil {
			return fmt.Errorf("write the certificates of the control plane: %w", err)
		}
	}
	return nil
}

// Stop ends both servers and removes the environment's directory. It returns when nothing is left. It also returns an error
// if a server had exited on its own. Further calls do nothing.
func (e *Environment) Stop() error {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	if e.stopped {
		return nil
	}
	e.stopped = true
	return errors.Join(e.apiServer.kill(), e.etcdProc.kill(), e.guard.release())
}

// Err returns how a server exited on its own, with its last output. It is nil while both run, after KillAPIServer, and
// after Stop. It may wait for a method that starts or stops servers.
func (e *Environment) Err() error {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	if e.stopped {
		return nil
	}
	return errors.Join(e.apiServer.endedItself(), e.etcdProc.endedItself())
}

// Config returns a copy of the administrator's configuration: it authenticates with a client certificate of the group
// system:masters, without a client-side rate limit.
func (e *Environment) Config() *rest.Config { return rest.CopyConfig(e.admin) }

// Kubeconfig returns the path of a kubeconfig file with the same user as Config.
func (e *Environment) Kubeconfig() string { return e.adminCfg }

// Dir returns the environment's directory, which also has etcd.log and kube-apiserver.log.
func (e *Environment) Dir() string { return e.dir }

// Etcd returns the address of etcd's HTTP API and a client with its certificates, for tests that inspect storage without
// the API server. The client keeps no connection.
func (e *Environment) Etcd() (base string, client *http.Client) { return e.etcd.base, e.etcd.http }

func (e *Environment) path(name string) string { return filepath.Join(e.dir, name) }
