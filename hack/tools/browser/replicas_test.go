// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/flyball-dev/flyball/manager/console"
)

// beside starts another replica of the example, and returns the address of its metrics.
func (s *site) beside(args ...string) (address string, stop func()) {
	s.t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	address = free.Addr().String()
	_ = free.Close()
	other := exec.Command(s.program, append([]string{
		"-kubeconfig", s.cluster.Kubeconfig, "-metrics-bind-address", address, "-health-probe-bind-address", "0",
	}, args...)...)
	other.Stdout, other.Stderr = s.log, s.log
	if err := other.Start(); err != nil {
		s.t.Fatal(err)
	}
	return address, func() {
		_ = other.Process.Signal(syscall.SIGTERM)
		_ = other.Wait()
	}
}

// The page of the replicas shows who holds each shard, and a key that this replica does not have
// leads to the one that has it, on both of them and in each form.
func TestBrowser_Replicas(t *testing.T) {
	browser := chromium(t)
	t.Setenv("POD_IP", "127.0.0.1") // replicas write their addresses into their Leases
	atSite(t, func(s *site) {
		shares := []string{"-leader-elect", "-leader-election-namespace", "default", "-shards", "32", "-shard-by", "namespace"}
		s.start(shares...)
		other, stop := s.beside(shares...)
		defer stop()
		s.put("sample", map[string]any{"content": "<h1>sample</h1>"})
		first := open(t, browser, forms[0])
		first.await("open the replicas", s.goTo(first, "replicas"))
		first.awaitText("2 replicas share 32 shards by namespace")
		first.await("each replica holds half of the shards", `[...document.querySelectorAll("tbody tr")].filter(r => r.cells[4] && r.cells[4].innerText === "16").length === 2`)
		const key = "controllers/website/key?key=default%2Fsample"
		here, there := s.address, other
		for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) { // one of them has the key
			if _, _, err := fetched(t.Context(), "http://"+here+console.Path+key); err == nil {
				break
			}
			if here, there = there, here; time.Now().After(end) {
				t.Fatalf("no replica has the key in %v", patience)
			}
		}
		first.close()
		for _, f := range forms {
			t.Run(f.name, func(t *testing.T) {
				for _, p := range []struct {
					name, host, path, text string
					reports                []string
				}{
					{"replicas", here, "replicas", "this one", nil},
					{"replicas-overview", here, "", "32 shards by namespace", nil},
					{"replicas-informers", here, "informers", "selected by", nil},
					{"replicas-key", here, key, "which this replica holds", nil},
					{"replicas-elsewhere", there, key, "no recorded run", []string{"status of 404"}},
					{"replicas-search", there, "search?q=sample", "The others have more", nil},
				} {
					tab := open(t, browser, f)
					do(tab, "open "+p.path, chromedp.Navigate("http://"+p.host+console.Path+p.path))
					tab.awaitText(p.text)
					tab.shoot(p.name + "-" + f.name)
					tab.fits(p.name)
					tab.accessible(p.name)
					tab.clean(p.name, p.host, p.reports...)
					tab.close()
				}
			})
		}
		tab := open(t, browser, forms[0])
		do(tab, "open the key", chromedp.Navigate("http://"+there+console.Path+key))
		tab.awaitText("which")
		link := do(tab, "read the link", chromedp.Evaluate[string](`document.querySelector(".place a").href`))
		if want := "http://" + here + console.Path + key; link != want {
			t.Errorf("the key leads to %s, want %s, where it is", link, want)
		}
		do(tab, "follow the link", chromedp.Navigate(link))
		tab.awaitText("which this replica holds")
		tab.close()
	})
}
