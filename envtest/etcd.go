// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

// startEtcd starts etcd on a free port and waits until it is healthy.
func (e *Environment) startEtcd(ctx context.Context) error {
	return onFreePort(func(port int) error {
		e.etcd.base = "https://" + loopback(port)
		if err := os.RemoveAll(e.path("etcd")); err != nil {
			return err
		}
		args := mergeArgs(e.etcdArgs(), e.opts.EtcdArgs)
		p, err := startProcess(e.guard, e.dir, filepath.Join(e.assets, "etcd"+exeSuffix), args)
		if err != nil {
			return err
		}
		if err := p.waitReady(ctx, e.opts.StartTimeout, func(ctx context.Context) error {
			_, err := e.etcd.do(ctx, http.MethodGet, "/health", "", nil)
			return err
		}); err != nil {
			p.kill() // err already says why
			return err
		}
		e.etcdProc = p
		return nil
	})
}

// etcdArgs returns the flags of a single-member etcd whose data need not survive a crash of the machine.
func (e *Environment) etcdArgs() map[string][]string {
	return map[string][]string{
		"name":                  {"envtest"},
		"data-dir":              {e.path("etcd")},
		"unsafe-no-fsync":       {"true"},
		"log-level":             {"warn"},
		"listen-client-urls":    {e.etcd.base},
		"advertise-client-urls": {e.etcd.base},
		"client-cert-auth":      {"true"},
		"trusted-ca-file":       {e.path("etcd-ca.crt")},
		"cert-file":             {e.path("etcd.crt")},
		"key-file":              {e.path("etcd.key")},

		// etcd listens for peers even if there are none.
		"listen-peer-urls":            {"https://127.0.0.1:0"},
		"initial-advertise-peer-urls": {"https://127.0.0.1:2380"},
		"initial-cluster":             {"envtest=https://127.0.0.1:2380"},
		"peer-client-cert-auth":       {"true"},
		"peer-trusted-ca-file":        {e.path("etcd-ca.crt")},
		"peer-cert-file":              {e.path("etcd.crt")},
		"peer-key-file":               {e.path("etcd.key")},
	}
}

// Compact makes etcd drop every revision but the latest, as its periodic compaction does after five minutes, and returns
// when it has. It works while the API server is killed.
//
// A running API server still serves the recent history from its memory. Clients see 410 Gone if the API server was killed
// and restarted around Compact, or runs with watch-cache=false.
func (e *Environment) Compact(ctx context.Context) error {
	answer, err := e.etcd.do(ctx, http.MethodPost, "/v3/kv/range", "application/json", []byte(`{"key":"AA==","limit":1}`))
	if err != nil {
		return fmt.Errorf("compact etcd: ask for its revision: %w", err)
	}
	var head struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := json.Unmarshal(answer, &head); err != nil {
		return fmt.Errorf("compact etcd: read its revision: %w", err)
	}
	if head.Header.Revision == "" {
		return errors.New("compact etcd: its answer has no revision")
	}
	body := fmt.Sprintf(`{"revision":%q,"physical":true}`, head.Header.Revision)
	if _, err := e.etcd.do(ctx, http.MethodPost, "/v3/kv/compaction", "application/json", []byte(body)); err != nil {
		return fmt.Errorf("compact etcd at revision %s: %w", head.Header.Revision, err)
	}
	return nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
