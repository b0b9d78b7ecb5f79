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

	"github.com/flyball-dev/flyball/internal/authority"
)

// defaultStartTimeout is long for a machine that builds and tests beside it; a server usually takes two seconds.
const defaultStartTimeout = 2 * time.Minute

// Options of an environment. The zero value starts an empty control plane.
type Options struct {
	// Assets is a directory with etcd, kube-apiserver and kubectl. Zero: as Binaries says.
	Assets string

	// Dir is the directory in which the environment makes its own, which Stop removes. Zero: os.TempDir().
	Dir string

	// CRDs are files, or directories with files, of CustomResourceDefinitions to install, as InstallCRDs does.
	CRDs []string

	// CRDObjects are CustomResourceDefinitions to install, as InstallCRDObjects does; ParseCRDs reads them from elsewhere.
	CRDObjects []runtime.Object

	// Webhooks are files, or directories with files, of MutatingWebhookConfigurations and ValidatingWebhookConfigurations
	// to install, as InstallWebhooks does.
	Webhooks []string

	// APIServerArgs sets flags of kube-apiserver, named without dashes. A flag's values replace the environment's own;
	// no values take the flag away. Zero: the environment's own.
	APIServerArgs map[string][]string

	// EtcdArgs sets flags of etcd, as APIServerArgs does.
	EtcdArgs map[string][]string

	// StartTimeout bounds the wait for each server, for the CRDs and for the webhooks. Zero: two minutes. Building binaries is not counted.
	StartTimeout time.Duration

	// Output is told how the building of missing binaries goes. Zero: os.Stderr.
	Output io.Writer
}

// An Environment is one running control plane. Start makes it, Stop ends it. It is safe for concurrent use;
// KillAPIServer, StartAPIServer and Stop wait for each other.
type Environment struct {
	opts     Options
	assets   string // directory of the binaries
	dir      string // of all that the environment writes
	guard    *guard
	users    *authority.Authority // of the API server and those who log in to it
	storage  *authority.Authority // of etcd and those who log in to it
	api      endpoint
	etcd     endpoint
	port     int // of the API server, for life
	admin    *rest.Config
	adminCfg string // path of the administrator's kubeconfig
	webhooks WebhookServing

	// turn is held, by filling it, while a server is started or stopped; it guards what follows.
	turn      chan struct{}
	stopped   bool
	etcdProc  *process
	apiServer *process // nil while killed

	mu struct {
		sync.Mutex
		crds []*unstructured.Unstructured // installed by us: served again after a restart
	}
}

// Start starts etcd and kube-apiserver, installs the CRDs and webhooks of opts, and returns when all of that serves. It builds the
// binaries first where there are none, see Binaries. The context bounds the start alone. On an error nothing is left.
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

// writeIdentities makes the authorities and writes what the servers need of them.
func (e *Environment) writeIdentities(now time.Time) (err error) {
	if e.users, err = authority.New(now, "envtest"); err != nil {
		return err
	}
	if e.storage, err = authority.New(now, "envtest"); err != nil {
		return err
	}
	signing, err := authority.SigningKey()
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

// Stop ends both servers and removes the environment's directory. It returns when nothing is left. Its error says
// also when a server had ended before by itself. A second call does nothing.
func (e *Environment) Stop() error {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	if e.stopped {
		return nil
	}
	e.stopped = true
	return errors.Join(e.apiServer.kill(), e.etcdProc.kill(), e.guard.release())
}

// Err says how a server has ended by itself, and what it last said. It is nil while both run, while a server is down
// because KillAPIServer ended it, and after Stop. It may wait for one of the methods that start and stop servers.
func (e *Environment) Err() error {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	if e.stopped {
		return nil
	}
	return errors.Join(e.apiServer.endedItself(), e.etcdProc.endedItself())
}

// Config returns a configuration that logs in as an administrator, by a client certificate of the group
// system:masters, without a limit on its rate of requests. It is the caller's own.
func (e *Environment) Config() *rest.Config { return rest.CopyConfig(e.admin) }

// Kubeconfig returns the path of a kubeconfig file that logs in as Config does.
func (e *Environment) Kubeconfig() string { return e.adminCfg }

// Dir returns the environment's directory. Among other files it has etcd.log and kube-apiserver.log.
func (e *Environment) Dir() string { return e.dir }

// Etcd returns the address of etcd's HTTP API and a client with the certificates for it, for tests that look at what is
// stored without the API server. The client keeps no connection.
func (e *Environment) Etcd() (base string, client *http.Client) { return e.etcd.base, e.etcd.http }

func (e *Environment) path(name string) string { return filepath.Join(e.dir, name) }
