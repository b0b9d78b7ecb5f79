// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package logtest runs, for tests, a program that uses Secrets and tokens in
// good and bad ways, and searches all its output for their values: the log at
// V(8), klog at V(10), spans, events, metrics, probes and snapshots. A SpanRecorder keeps spans in
// memory.
package logtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// The secret values, one of them a number.
const (
	value  = "canary-8213746"
	number = 8213746550
)

// verbosity of the managers' log, which is that of their requests. At 9 and above client-go's
// round tripper has a data race: it reads the time that a server took, and the connection of a
// request that was canceled may still write it.
const verbosity = 8

// transcript collects the output. Safe for concurrent use.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// Leaks runs the program in a namespace of the server of cfg, which it fills
// with Secrets, and returns the lines with confidential content. The error
// means that the program failed to do its work. While it runs it controls klog.
func Leaks(ctx context.Context, cfg *rest.Config, namespace string) (lines []string, err error) {
	said := &transcript{}
	defer listen(said)()
	p := &program{said: said, namespace: namespace, spans: &SpanRecorder{}, done: make(chan struct{})}
	if err := p.run(ctx, cfg); err != nil {
		return nil, err
	}
	for _, span := range p.spans.Spans() {
		fmt.Fprintf(said, "span %s: %+v %s\n", span.Name, span, span.Failure())
	}
	text := said.String()
	for _, want := range append(p.wanted(), "Request Body", "Response Body") {
		if !strings.Contains(text, want) {
			return nil, fmt.Errorf("%q was not said, so that the search for leaks means nothing", want)
		}
	}
	for line := range strings.Lines(text) {
		for _, secret := range p.secrets() {
			if strings.Contains(line, secret) {
				lines = append(lines, line)
				break
			}
		}
	}
	return lines, nil
}

// listen makes klog write everything to w, until stop is called.
func listen(w io.Writer) (stop func()) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	set := func(values ...string) {
		for i := 0; i < len(values); i += 2 {
			_ = flags.Set(values[i], values[i+1]) // klog's own flags
		}
	}
	set("logtostderr", "false", "alsologtostderr", "false", "stderrthreshold", "FATAL", "v", "8", "vmodule", "round_trippers=8,*=10")
	klog.SetOutput(w)
	return func() {
		klog.Flush()
		set("v", "0", "vmodule", "", "logtostderr", "true", "stderrthreshold", "ERROR")
		klog.SetOutput(io.Discard)
	}
}

type program struct {
	said      *transcript
	namespace string
	spans     *SpanRecorder
	tokens    []string // from the server
	once      sync.Once
	done      chan struct{} // closed after all steps
	err       error         // of a failed step
}

// secrets returns what must not appear: the values, as they are sent, and bytes
// in hexadecimal.
func (p *program) secrets() []string {
	all := append([]string{value, fmt.Sprint(number), "00000000  "}, p.tokens...)
	for _, text := range all[:2:2] {
		for shift := range 3 { // at any offset in the text
			encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + text))
			all = append(all, encoded[4:len(encoded)-4])
		}
	}
	return all
}

// wanted returns texts that show that the program did its work.
func (p *program) wanted() []string {
	return []string{"Reconcile failed; retrying", "Reconcile panicked", "Quarantined objects", "flyball_reconcile_outcomes_total", "/readyz"}
}

// addFailing adds a controller that panics and one that fails.
func (p *program) addFailing(mgr *manager.Manager) error {
	for _, name := range []string{"panics", "fails"} {
		c := reconcile.New(name, func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			err := p.refused(ctx, mgr.Client())
			if name == "panics" {
				panic(err)
			}
			return reconcile.Result{}, err
		}, reconcile.Options{Workers: 1})
		c.Watch(source.Kind(informer.For[*corev1.Secret](mgr.Informers()), source.Self))
		if err := mgr.Add(c); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) run(ctx context.Context, cfg *rest.Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	mgr, err := manager.New(manager.Options{
		Config: cfg, Logger: textlog.New(p.said, verbosity), TracerProvider: p.spans, MetricsAddress: "127.0.0.1:0", HealthAddress: "127.0.0.1:0",
		Informers: informer.Options{Namespaces: []string{p.namespace}},
	})
	if err != nil {
		return err
	}
	events := mgr.Events("canary")
	steps := p.steps(mgr)
	c := reconcile.New("canary", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		if key.Name != firstSecret {
			return reconcile.Result{}, nil
		}
		p.once.Do(func() {
			defer close(p.done)
			for _, step := range steps {
				err := step.do(ctx)
				fmt.Fprintf(p.said, "step %s: %v %+v %#v\n", step.name, err, err, err)
				if (err != nil) != step.fails {
					p.err = errors.Join(p.err, fmt.Errorf("step %q: %v; is it to fail? %v", step.name, err, step.fails))
				}
				if err != nil {
					events.Eventf(&corev1.ConfigMap{ObjectMeta: metaOf(p.namespace, "web")}, nil, corev1.EventTypeWarning, "Failed", step.name, "%v", err)
				}
			}
		})
		return reconcile.Result{}, nil
	}, reconcile.Options{Workers: 1})
	c.Watch(source.Kind(informer.For[*corev1.Secret](mgr.Informers()), source.Self))
	if err := p.addFailing(mgr); err != nil {
		return err
	}
	if err := mgr.Add(c); err != nil {
		return err
	}
	if err := mgr.Client().Create(ctx, secretOf(p.namespace, firstSecret)); err != nil {
		return err
	}
	ended := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { ended <- mgr.Run(ctx) })
	select {
	case <-p.done:
	case err := <-ended:
		return fmt.Errorf("the manager has ended: %w", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := p.misread(ctx, cfg); err != nil {
		return err
	}
	for _, path := range []string{mgr.MetricsAddr() + "/metrics", mgr.HealthAddr() + "/readyz?verbose", mgr.HealthAddr() + "/livez?verbose"} {
		if err := p.fetch(ctx, "http://"+path); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.said, "%s %+v %+v %+v\n", mgr.Snapshot(), mgr.Snapshot(), c.Failures(), c.QueueSnapshot())
	stop()
	running.Wait()
	return errors.Join(p.err, <-ended)
}

// misread runs another manager that watches Secrets as a type that does not
// match them.
func (p *program) misread(ctx context.Context, cfg *rest.Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("Secret"), &dated{})
	mgr, err := manager.New(manager.Options{
		Config: cfg, Scheme: scheme, Logger: textlog.New(p.said, verbosity), MetricsAddress: "0", HealthAddress: "127.0.0.1:0",
		Informers: informer.Options{Namespaces: []string{p.namespace}},
	})
	if err != nil {
		return err
	}
	read := make(chan struct{})
	var once sync.Once
	wrong := informer.For[*dated](mgr.Informers())
	c := reconcile.New("misreads", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		_, err := wrong.Lister().Get(key)
		live := mgr.Client().Get(ctx, key, &dated{})
		fmt.Fprintf(p.said, "misread: %v %+v, %v %+v\n", err, err, live, live)
		if key.Name == firstSecret && err != nil && live != nil {
			once.Do(func() { close(read) })
		}
		return reconcile.Result{}, errors.Join(err, live)
	}, reconcile.Options{Workers: 1})
	c.Watch(source.Kind(wrong, source.Self))
	if err := mgr.Add(c); err != nil {
		return err
	}
	ended := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { ended <- mgr.Run(ctx) })
	select {
	case <-read:
	case err := <-ended:
		return fmt.Errorf("the manager that misreads has ended: %w", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := p.fetch(ctx, "http://"+mgr.HealthAddr()+"/readyz?verbose"); err != nil {
		return err
	}
	fmt.Fprintf(p.said, "%s %+v %+v\n", mgr.Snapshot(), mgr.Snapshot(), c.Failures())
	stop()
	running.Wait()
	return <-ended
}

func (p *program) fetch(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Fprintf(p.said, "GET %s\n", url)
	_, err = io.Copy(p.said, resp.Body)
	return err
}

// refused provokes an error of the server that repeats a value.
func (p *program) refused(ctx context.Context, c *client.Client) error {
	return c.Apply(ctx, looseSecret(p.namespace, "refused", map[string]any{"stringData": map[string]any{"password": map[string]any{"is": value}}}), client.FieldOwner("canary"))
}
