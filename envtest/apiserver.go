// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/localserver"
)

var errStopped = errors.New("the environment has been stopped")

// startAPIServer starts the API server for the first time, on a free port, which it then keeps.
func (e *Environment) startAPIServer(ctx context.Context) error {
	admin, err := e.users.Client(time.Now(), "envtest-admin", "system:masters")
	if err != nil {
		return err
	}
	if e.api.http, err = newHTTPClient(e.users, admin); err != nil {
		return err
	}
	if err := onFreePort(func(port int) error {
		e.port, e.api.base = port, "https://"+loopback(port)
		return e.runAPIServer(ctx)
	}); err != nil {
		return err
	}
	e.admin = e.configFor(admin)
	e.adminCfg, err = e.WriteKubeconfig("admin", e.admin)
	return err
}

// runAPIServer starts the API server on its port and waits until it is ready.
func (e *Environment) runAPIServer(ctx context.Context) error {
	args := mergeArgs(e.apiServerArgs(), e.opts.APIServerArgs)
	p, err := startProcess(e.guard, e.dir, filepath.Join(e.assets, "kube-apiserver"+exeSuffix), args)
	if err != nil {
		return err
	}
	if err := p.waitReady(ctx, e.opts.StartTimeout, e.apiReady); err != nil {
		p.kill() // err already says why
		return err
	}
	e.apiServer = p
	return nil
}

// apiReady reports whether the API server is ready for a user: /readyz succeeds, and the default namespace exists.
func (e *Environment) apiReady(ctx context.Context) error {
	if _, err := e.api.do(ctx, http.MethodGet, "/readyz", "", nil); err != nil {
		return err
	}
	_, err := e.api.do(ctx, http.MethodGet, "/api/v1/namespaces/default", "", nil)
	return err
}

// apiServerArgs returns the flags of a standalone API server: no controller creates service accounts, and nothing serves
// other API servers.
func (e *Environment) apiServerArgs() map[string][]string {
	return map[string][]string{
		"bind-address":             {"127.0.0.1"},
		"advertise-address":        {"127.0.0.1"},
		"secure-port":              {strconv.Itoa(e.port)},
		"endpoint-reconciler-type": {"none"},
		"cert-dir":                 {e.dir},
		"tls-cert-file":            {e.path("kube-apiserver.crt")},
		"tls-private-key-file":     {e.path("kube-apiserver.key")},
		"client-ca-file":           {e.path("users-ca.crt")},

		"etcd-servers":  {e.etcd.base},
		"etcd-cafile":   {e.path("etcd-ca.crt")},
		"etcd-certfile": {e.path("etcd-client.crt")},
		"etcd-keyfile":  {e.path("etcd-client.key")},

		"authorization-mode":               {"RBAC"},
		"disable-admission-plugins":        {"ServiceAccount"},
		"service-account-issuer":           {"https://kubernetes.default.svc.cluster.local"},
		"service-account-key-file":         {e.path("service-accounts.key")},
		"service-account-signing-key-file": {e.path("service-accounts.key")},

		"service-cluster-ip-range": {"10.0.0.0/24"},
		"allow-privileged":         {"true"},
		"profiling":                {"false"},
	}
}

// mergeArgs returns own, overridden by set, as arguments sorted by flag name.
func mergeArgs(own, set map[string][]string) []string {
	merged := map[string][]string{}
	for _, flags := range []map[string][]string{own, set} {
		maps.Copy(merged, flags)
	}
	var args []string
	for name, values := range merged {
		for _, value := range values {
			args = append(args, "--"+name+"="+value)
		}
	}
	slices.Sort(args)
	return args
}

// onFreePort calls try with a free port, and again with another if the port was taken before it was used.
func onFreePort(try func(port int) error) error {
	var err error
	for range 5 {
		var port int
		if port, err = localserver.FreePort(); err != nil {
			return err
		}
		if err = try(port); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// configFor returns a configuration that authenticates with a client certificate.
func (e *Environment) configFor(user keypair.Encoded) *rest.Config {
	return &rest.Config{
		Host:            e.api.base,
		TLSClientConfig: rest.TLSClientConfig{CAData: e.users.PEM, CertData: user.Cert, KeyData: user.Key},
		QPS:             -1,
	}
}

// KillAPIServer kills the API server with SIGKILL and returns when it is gone. etcd and its data stay. It is an error if
// the API server does not run.
func (e *Environment) KillAPIServer() error {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	switch {
	case e.stopped:
		return fmt.Errorf("kill the API server: %w", errStopped)
	case e.apiServer == nil:
		return errors.New("kill the API server: it does not run; StartAPIServer starts it")
	}
	err := e.apiServer.kill()
	e.apiServer = nil
	return err
}

// StartAPIServer restarts the API server after KillAPIServer, with the same port and data, and returns when it serves
// again, including the CRDs installed through the environment. It is an error if the API server runs.
func (e *Environment) StartAPIServer(ctx context.Context) error {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	switch {
	case e.stopped:
		return fmt.Errorf("start the API server: %w", errStopped)
	case e.apiServer != nil:
		return errors.New("start the API server: it runs; KillAPIServer ends it")
	}
	if err := e.runAPIServer(ctx); err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	e.mu.Lock()
	crds := slices.Clone(e.mu.crds)
	e.mu.Unlock()
	return e.waitServed(ctx, crds)
}
