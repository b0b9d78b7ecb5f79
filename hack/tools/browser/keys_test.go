// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/console"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/embedded"
	"github.com/flyball-dev/flyball/source"
)

const manyKeys = 100_000

// with100000Keys calls test with the address of a program whose controller has recorded a run of each
// of 100,000 keys, and has them all in its queue.
func with100000Keys(t *testing.T, test func(address string)) {
	t.Helper()
	err := embedded.Run(t.Context(), embedded.Options{}, func(ctx context.Context, c embedded.Cluster) error {
		mgr, err := manager.New(manager.Options{
			Config: c.Config, MetricsAddress: "127.0.0.1:0", HealthAddress: "0", MetricsServing: manager.Serving{Console: console.Handler},
		})
		if err != nil {
			return err
		}
		var ran atomic.Int64
		many := reconcile.New("many", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
			ran.Add(1)
			if strings.HasSuffix(key.Name, "7") {
				return reconcile.Result{}, reconcile.Terminal(errors.New("the seventh is bad"))
			}
			return reconcile.Result{RequeueAfter: time.Hour}, nil
		}, reconcile.Options{RecordBytes: 256 << 20})
		fed := make(chan reconcile.Key)
		many.Watch(source.Channel(fed, source.ChannelOptions{}))
		if err := mgr.Add(many); err != nil {
			return err
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- mgr.Run(ctx) }()
		for i := range manyKeys {
			fed <- reconcile.Key{Namespace: fmt.Sprintf("tenant-%d", i%100), Name: fmt.Sprintf("site-%06d", i)}
		}
		for end := time.Now().Add(patience); ran.Load() < manyKeys; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				return fmt.Errorf("%d of %d keys have run in %v", ran.Load(), manyKeys, patience)
			}
		}
		test(mgr.MetricsAddr())
		stop()
		return <-ended
	})
	if err != nil {
		t.Error(err)
	}
}

// However many keys there are, a page shows a hundred. -v prints the times, which are in
// docs/console.md.
func TestBrowser_PagesOf100000Keys(t *testing.T) {
	browser := chromium(t)
	with100000Keys(t, func(address string) {
		for _, page := range []struct {
			path, text string
			bytes      int // at most
		}{
			{"", "many", 40 << 10},
			{"controllers/many", "100000 of 100000 keys", 60 << 10},
			{"controllers/many?offset=99900", "100000 of 100000 keys", 60 << 10},
			{"controllers/many?sort=key&filter=tenant-7%2F", "1000 of 100000 keys", 60 << 10},
			{"controllers/many?state=failing", "10000 of 100000 keys", 60 << 10},
			{"controllers/many/key?key=tenant-42%2Fsite-000042", "tenant-42/site-000042", 10 << 10},
			{"search?q=site-0000", "tenant-42/site-000042", 60 << 10},
		} {
			took, size, err := fetched(t.Context(), "http://"+address+console.Path+page.path)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%7d bytes in %6.1f ms: %s", size, float64(took.Microseconds())/1000, page.path)
			if size > page.bytes {
				t.Errorf("%s has %d bytes, want at most %d: it grows with the keys", page.path, size, page.bytes)
			}
			tab := open(t, browser, forms[0])
			do(tab, "open "+page.path, chromedp.Navigate("http://"+address+console.Path+page.path))
			tab.awaitText(page.text)
			if rows := do(tab, "count the rows", chromedp.Evaluate[int](`document.querySelectorAll("tbody tr").length`)); rows > 100 {
				t.Errorf("%s has %d rows, want at most 100", page.path, rows)
			}
			tab.accessible(page.path)
			tab.clean(page.path, address)
			tab.close()
		}
	})
}

// fetched returns the time for a page and its size, the shortest time of five.
func fetched(ctx context.Context, address string) (took time.Duration, size int, err error) {
	for range 5 {
		began := time.Now()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return 0, 0, err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, 0, err
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			return 0, 0, fmt.Errorf("get %s: %d, %w", address, answer.StatusCode, err)
		}
		if lasted := time.Since(began); took == 0 || lasted < took {
			took = lasted
		}
		size = len(text)
	}
	return took, size, nil
}
