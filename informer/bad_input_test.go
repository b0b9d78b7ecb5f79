// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// lines collects log lines.
type lines struct {
	mu struct {
		sync.Mutex
		all []string
	}
}

func (l *lines) options() informer.Options {
	return informer.Options{Logger: funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.mu.all = append(l.mu.all, args)
	}, funcr.Options{})}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// with counts the lines that contain all of parts.
func (l *lines) with(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.mu.all {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			n++
		}
	}
	return n
}

// If an index function panics, only that object lacks values, in that index.
// The panic is logged with the key and the stack, and counted.
func TestInformer_PanickingIndexFunctionCostsOneObjectItsValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		s := newServer()
		s.put("bad", "1")
		s.put("good", "1")
		i := informer.New[cmap](s, configMaps, log.options())
		must(t, i.AddIndex("angry", func(cm cmap) []string {
			if cm.Name == "bad" && cm.Data["v"] == "1" {
				panic("a fault of the index")
			}
			return []string{"all"}
		}))
		must(t, i.AddIndex("calm", func(cmap) []string { return []string{"all"} }))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go i.Run(ctx)
		<-i.Synced()
		synctest.Wait() // the panic is logged after the store has changed
		check := func(index, want string) {
			t.Helper()
			objects, err := i.Lister().List(informer.QueryOptions{Index: index, IndexValue: "all"})
			must(t, err)
			var names []string
			for _, o := range objects {
				names = append(names, o.Name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != want {
				t.Errorf("index %s has %q, want %q", index, got, want)
			}
		}
		check("angry", "good")
		check("calm", "bad good")
		if got := i.Snapshot().IndexPanics; got != 1 {
			t.Errorf("%d panics of index functions counted, want 1", got)
		}
		if n := log.with("index function panicked", "a fault of the index", "ConfigMap ns/bad", "angry", "bad_input_test.go"); n != 1 {
			t.Errorf("%d log lines with key, index and stack, want 1: %q", n, log.mu.all)
		}
		s.put("bad", "2")
		synctest.Wait()
		check("angry", "bad good") // the next version heals it
	})
}

// An object that the transform panics on or refuses is logged, once per
// version; a panic with its stack.
func TestInformer_ObjectThatATransformCannotTakeIsNamedInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		s := newServer()
		s.put("first", "panic")
		i := informer.New[cmap](s, configMaps, log.options())
		must(t, i.SetTransform(func(cm cmap) (cmap, error) {
			switch cm.Data["v"] {
			case "panic":
				panic("a fault of the transform")
			case "refuse":
				return nil, errors.New("refused")
			}
			return cm, nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go i.Run(ctx)
		<-i.Synced()
		s.put("second", "refuse")
		synctest.Wait()
		s.Fail(apierrors.NewServiceUnavailable("away"))
		s.Cut(io.EOF)
		synctest.Wait()
		lists := s.Lists()
		s.put("third", "1")
		s.Compact()
		s.Fail(nil) // the relist has the same versions, so nothing changes
		time.Sleep(time.Minute)
		if s.Lists() == lists {
			t.Error("the informer has not listed anew, so this test shows nothing of relists")
		}
		if n := log.with("cannot be decoded", `"error"="transform: panic: a fault of the transform"`, `"key"="ns/first"`, "bad_input_test.go"); n != 1 {
			t.Errorf("%d log lines with the panic, its key and its stack, want 1: %q", n, log.mu.all)
		}
		if n := log.with("cannot be decoded", `"error"="transform: refused"`, `"key"="ns/second"`); n != 1 {
			t.Errorf("%d log lines with the refusal and its key, want 1: %q", n, log.mu.all)
		}
		if got := i.Snapshot().Undecodable; got != 2 {
			t.Errorf("%d undecodable objects counted, want 2", got)
		}
		for name, want := range map[string]string{
			"first":  "read ConfigMap ns/first: the object cannot be decoded: transform: panic: a fault of the transform",
			"second": "read ConfigMap ns/second: the object cannot be decoded: transform: refused",
		} {
			if _, err := i.Lister().Get(kube.Key{Namespace: "ns", Name: name}); err == nil || err.Error() != want {
				t.Errorf("Get of %s: %v, want %q", name, err, want)
			}
		}
	})
}

// A transform that returns nothing has refused the object, also for a resync.
func TestInformer_TransformThatReturnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		i := informer.New[cmap](s, configMaps, informer.Options{Resync: time.Minute})
		must(t, i.SetTransform(func(cmap) (cmap, error) { return nil, nil }))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go i.Run(ctx)
		join(t, i, func(e kube.Event[cmap]) { t.Errorf("told of %s %s, which has no object", e.Type, e.Key) }, informer.HandlerOptions{})
		<-i.Synced()
		time.Sleep(time.Hour)
		if _, err := i.Lister().Get(kube.Key{Namespace: "ns", Name: "a"}); err == nil || !strings.Contains(err.Error(), "returned no object") {
			t.Errorf("Get: %v, want an error that says what the transform did", err)
		}
	})
}

// Misuse is an error with the remedy, never a panic.
func TestInformer_MisuseSaysWhatToDo(t *testing.T) {
	i := informer.New[cmap](newServer(), configMaps, informer.Options{})
	_, nilHandler := i.AddHandler(nil, informer.HandlerOptions{Name: "h"})
	orphan := informer.For[cmap](nil)
	_, orphanHandler := orphan.AddHandler(func(kube.Event[cmap]) {}, informer.HandlerOptions{})
	f, err := informer.NewSharedInformerFactory(&rest.Config{Host: "http://127.0.0.1:1"}, clientscheme.Scheme, informer.Options{})
	must(t, err)
	_, nilConfig := informer.NewSharedInformerFactory(nil, clientscheme.Scheme, informer.Options{})
	_, nilScheme := informer.NewSharedInformerFactory(&rest.Config{}, nil, informer.Options{})
	must(t, i.AddIndex("taken", func(cmap) []string { return nil }))
	_, unknown := i.Lister().ByIndex("unknown", "v")
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"nil handler":                   {nilHandler, `informer of ConfigMap: add handler "h": the function is nil; give one`},
		"nil index function":            {i.AddIndex("x", nil), `informer of ConfigMap: add index "x": the function is nil; give one`},
		"two indices of a name":         {i.AddIndex("taken", func(cmap) []string { return nil }), `add index "taken" of ConfigMap: there is an index of this name; choose another`},
		"unknown index":                 {unknown, `read index "unknown" of ConfigMap: there is no such index; add it with AddIndex`},
		"nil factory":                   {orphan.Err(), "informer for *v1.ConfigMap: the factory is nil; give the manager's Informers()"},
		"nil factory, run":              {orphan.Run(t.Context()), "the factory is nil"},
		"nil factory, handler":          {orphanHandler, "the factory is nil"},
		"nil configuration":             {nilConfig, "the REST configuration is nil; load one"},
		"nil scheme":                    {nilScheme, "the scheme is nil; give the scheme"},
		"malformed label":               {informer.For[cmap](f, informer.Scope{LabelSelector: "a==(("}).Err(), `informer of ConfigMap: watch in all namespaces with labels "a==((": parse label selector: `},
		"informer that has one already": {informer.For[cmap](f).Run(t.Context()), "the informer belongs to a factory, which runs it"},
	} {
		if tc.err == nil || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, tc.err, tc.want)
		}
	}
	if _, err := orphan.Lister().Get(kube.Key{Name: "a"}); err == nil {
		t.Error("Get of an informer without a factory succeeded")
	}
}

// A type that is not in the scheme is an error with the remedy, for each way to
// make an informer.
func TestInformer_TypeThatIsNotInTheSchemeSaysWhatToDo(t *testing.T) {
	const want = "informer for *v1.ConfigMap: the type is not in the scheme; call its package's AddToScheme(scheme) first"
	cfg := &rest.Config{Host: "http://127.0.0.1:1"}
	f, err := informer.NewSharedInformerFactory(cfg, runtime.NewScheme(), informer.Options{})
	must(t, err)
	i := informer.For[cmap](f)
	_, kindErr := informer.KindOf[cmap](runtime.NewScheme())
	_, lwErr := informer.NewListerWatcher[cmap](cfg, runtime.NewScheme(), listwatch.Scope{})
	_, joinErr := i.AddHandler(func(kube.Event[cmap]) {}, informer.HandlerOptions{})
	for name, err := range map[string]error{
		"Err": i.Err(), "AddHandler": joinErr, "AddIndex": i.AddIndex("x", func(cmap) []string { return nil }),
		"KindOf": kindErr, "NewListerWatcher": lwErr, "Run of the factory": f.Run(t.Context()),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
