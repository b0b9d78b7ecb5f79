// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "`directory` for a picture of each page (default: none)")

// patience is how long a page may take; a machine may be busy.
const patience = time.Minute

// form is how a page is looked at.
type form struct {
	name          string
	width, height int64
	scheme        string // of colours
}

var forms = []form{
	{"desktop-light", 1280, 900, "light"},
	{"desktop-dark", 1280, 900, "dark"},
	{"phone-light", 390, 844, "light"},
	{"phone-dark", 390, 844, "dark"},
}

// chromium returns the context of a browser, which ends with the test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	i := slices.IndexFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	if i < 0 {
		t.Skipf("SKIPPED: none of %s is in the PATH; install Chromium, as by apt-get install chromium", strings.Join(names, ", "))
	}
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(names[i]), chromedp.WSURLReadTimeout(patience))
	if os.Getuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // which root cannot have
	}
	all, stop := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(all)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", names[i], err)
	}
	return ctx
}

// tab is one open page of a browser. It collects what must not happen.
type tab struct {
	t   *testing.T
	ctx context.Context
	// close closes it: each open page of the console has one of the six connections that a browser
	// has to a server.
	close func()
	mu    struct {
		sync.Mutex
		hosts  map[string]bool
		errors []string
	}
}

// open opens a tab with a form.
func open(t *testing.T, browser context.Context, f form) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(browser)
	t.Cleanup(end)
	b := &tab{t: t, ctx: ctx, close: end}
	b.mu.hosts = map[string]bool{}
	_, sized := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: f.width, Height: f.height, DeviceScaleFactor: 1, Mobile: f.width < 600,
	})
	_, coloured := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: f.scheme}},
	})
	if err := errors.Join(sized, coloured, chromedp.Listen(ctx, b.observe)); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	for _, command := range []cdp.Command[cdp.Empty, cdp.Empty]{cdplog.Enable, runtime.Enable} {
		if _, err := chromedp.Call(ctx, command, cdp.Empty{}); err != nil {
			t.Fatalf("open a tab: %v", err)
		}
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	return b
}

func (b *tab) observe(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" {
			b.mu.hosts[u.Host] = true
		}
	case *runtime.EventExceptionThrown:
		b.mu.errors = append(b.mu.errors, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.mu.errors = append(b.mu.errors, fmt.Sprintf("console.%s", e.Type))
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Level == cdplog.EntryLevelWarning {
			b.mu.errors = append(b.mu.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// do runs an action, and returns its value. what says what it is for.
func do[T any](b *tab, what string, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	return value
}

// await waits until a JavaScript expression is true.
func (b *tab) await(what, expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if do(b, what, chromedp.Evaluate[bool](expression)) {
			return
		}
		if time.Now().After(end) {
			text := do(b, what, chromedp.Evaluate[string](`document.body.innerText`))
			b.t.Fatalf("%s: %s is not true in %v. The page is\n%s", what, expression, patience, text)
		}
	}
}

// awaitText waits until the page has a text, in lower or upper case.
func (b *tab) awaitText(text string) {
	b.t.Helper()
	b.await("wait for "+text, fmt.Sprintf("document.body.innerText.toLowerCase().includes(%q)", strings.ToLower(text)))
}

// clean fails the test if the page has reported an error, or asked another host than host.
func (b *tab) clean(page, host string, expected ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for other := range b.mu.hosts {
		if other != host {
			b.t.Errorf("%s: a request went to %q, want none but to %s", page, other, host)
		}
	}
	for _, text := range b.mu.errors {
		if !slices.ContainsFunc(expected, func(part string) bool { return strings.Contains(text, part) }) {
			b.t.Errorf("%s: the browser reports %q", page, text)
		}
	}
}

// fits fails the test if the page is wider than the window.
func (b *tab) fits(page string) {
	b.t.Helper()
	if wide := do(b, "measure", chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`)); wide > 0 {
		b.t.Errorf("%s: the page is %d px wider than the window; only tables and texts may scroll", page, wide)
	}
}

// shoot keeps a picture of the whole page, if that is asked for.
func (b *tab) shoot(name string) {
	if *shots == "" {
		return
	}
	png := do(b, "take a picture", chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644); err != nil {
		b.t.Error(err)
	}
}
