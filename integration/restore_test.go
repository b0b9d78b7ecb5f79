// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/internal/localserver"
	"github.com/flyball-dev/flyball/kube"
)

// storage is an etcd whose data can be set back.
type storage struct {
	binary, url, data string
	cmd               *exec.Cmd
	ended             chan error
}

// newStorage runs an etcd until the spec ends.
func newStorage(ctx context.Context) *storage {
	GinkgoHelper()
	assets, err := envtest.Binaries(ctx, envtest.BinariesOptions{})
	Expect(err).NotTo(HaveOccurred())
	s := &storage{binary: filepath.Join(assets, "etcd"), data: filepath.Join(GinkgoT().TempDir(), "etcd")}
	DeferCleanup(func() { s.kill() })
	Expect(func() error { // a free port may be taken before it is used
		var failed error
		for range 5 {
			address, err := localserver.FreeAddress()
			if err != nil {
				return err
			}
			s.url = "http://" + address
			if failed = s.start(); failed == nil {
				return nil
			}
		}
		return failed
	}()).To(Succeed())
	return s
}

// start returns when etcd serves, or has ended.
func (s *storage) start() error {
	s.cmd = exec.Command(s.binary, "--name=spec", "--data-dir="+s.data, "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls="+s.url, "--advertise-client-urls="+s.url, "--listen-peer-urls=http://127.0.0.1:0",
		"--initial-advertise-peer-urls=http://127.0.0.1:2380", "--initial-cluster=spec=http://127.0.0.1:2380")
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(s.cmd, s.ended)
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for late := time.After(time.Minute); ; {
		select {
		case err := <-s.ended:
			s.cmd = nil
			return fmt.Errorf("etcd has ended: %w", err)
		case <-late:
			return errors.New("etcd does not serve")
		case <-poll.C:
			if resp, err := http.Get(s.url + "/health"); err == nil {
				_ = resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					return nil
				}
			}
		}
	}
}

func (s *storage) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		<-s.ended
		s.cmd = nil
	}
}

// offline calls f while neither the API server nor etcd runs.
func (s *storage) offline(ctx context.Context, server *envtest.Environment, f func() error) {
	GinkgoHelper()
	Expect(server.KillAPIServer()).To(Succeed())
	s.kill()
	Expect(f()).To(Succeed())
	Expect(s.start()).To(Succeed())
	Expect(server.StartAPIServer(ctx)).To(Succeed())
}

var _ = Describe("a restore of etcd that new revisions have overtaken", func() {
	It("is noticed by one read after the connection has broken, whatever the newest event was (A39)", Label("A39"), func(ctx context.Context) {
		etcd := newStorage(ctx)
		own, err := envtest.Start(ctx, envtest.Options{CRDObjects: []runtime.Object{crd("Widget")}, APIServerArgs: map[string][]string{
			"etcd-servers": {etcd.url}, "etcd-cafile": nil, "etcd-certfile": nil, "etcd-keyfile": nil,
		}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(own.Stop()).To(Succeed()) })
		writesTo(own)
		ns, elsewhere := newNamespace(ctx), newNamespace(ctx)
		passing := func(until kube.Version) { // of revisions
			GinkgoHelper()
			for n := 0; ; n++ {
				cm := configMap(elsewhere, fmt.Sprint("passing-", n), nil)
				Expect(outside.Create(ctx, cm)).To(Succeed())
				Expect(outside.Delete(ctx, cm)).To(Succeed())
				if kube.ParseVersion(cm.ResourceVersion) > until {
					return
				}
			}
		}
		changed := configMap(ns, "changed", map[string]string{"value": "1"})
		Expect(outside.Create(ctx, changed)).To(Succeed())
		backup := filepath.Join(GinkgoT().TempDir(), "backup")
		etcd.offline(ctx, own, func() error { return os.CopyFS(backup, os.DirFS(etcd.data)) })

		t := followThree(ctx, own.Config(), ns)
		// A restarted API server must not begin beyond what the informers have seen: it would
		// answer 410, and be listed anyway.
		passing(kube.ParseVersion(changed.ResourceVersion) + 500)
		changed.Data["value"] = "2"
		Expect(outside.Update(ctx, changed)).To(Succeed())
		t.write(ctx, "undone") // the newest of the widgets is a deletion
		t.equalServer(ctx)
		t.network.Shut()
		seen := max(t.maps.scope().Version, t.secrets.scope().Version, t.widgets.scope().Version)
		etcd.offline(ctx, own, func() error { return errors.Join(os.RemoveAll(etcd.data), os.CopyFS(etcd.data, os.DirFS(backup))) })
		passing(seen)
		t.network.Open()

		t.equalServer(ctx)
		for kind, relists := range map[string]map[string]int{
			"ConfigMap": t.maps.scope().Relists, "Secret": t.secrets.scope().Relists, "Widget": t.widgets.scope().Relists,
		} {
			Expect(relists).To(HaveKey("objects in older versions"), kind)
			Expect(relists).NotTo(HaveKey("expired"), "%s: the server went on with the watch", kind)
		}
	})
})
