// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
	"github.com/flyball-dev/flyball/source"
)

// duet is a controller of one ConfigMap with a Deployment, which others write too.
type duet struct {
	*simtest.Server
	t      *testing.T
	own    *client.Client
	sites  informer.Lister[*corev1.ConfigMap]
	webs   informer.Lister[*appsv1.Deployment]
	source *source.KindSource[*appsv1.Deployment, reconcile.Key]
	act    func(ctx context.Context, d *duet, site *corev1.ConfigMap) error
	pause  func()

	mu     sync.Mutex
	moment int
	began  []look
	gone   map[types.UID]bool
}

// look is what a reconcile found when it began.
type look struct {
	moment    int
	site, web kube.Version // 0: absent
	uid       types.UID    // of web
}

// foreignWrite is one whose effect a reconcile must see that begins after it.
type foreignWrite struct {
	what    string
	moment  int // before it
	ofSite  bool
	version kube.Version
	uid     types.UID
	removed bool
}

var duetKey = reconcile.Key{Namespace: "default", Name: "site"}

func newDuet(t *testing.T, seed uint64, act func(ctx context.Context, d *duet, site *corev1.ConfigMap) error, opts reconcile.Options) *duet {
	t.Helper()
	return newDuetWith(t, seed, act, opts, informer.Options{})
}

func newDuetWith(t *testing.T, seed uint64, act func(ctx context.Context, d *duet, site *corev1.ConfigMap) error, opts reconcile.Options, caches informer.Options) *duet {
	t.Helper()
	d := &duet{t: t, act: act, gone: map[types.UID]bool{}}
	random := rand.New(rand.NewPCG(seed, 1))
	d.pause = func() {
		d.mu.Lock()
		n := time.Duration(random.IntN(4)) * time.Millisecond
		d.mu.Unlock()
		time.Sleep(n)
	}
	d.Server = simtest.New(t, nil, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}})
	factory, err := informer.NewSharedInformerFactory(d.Config, clientscheme.Scheme, caches)
	if err != nil {
		t.Fatal(err)
	}
	sites, webs := informer.For[*corev1.ConfigMap](factory), informer.For[*appsv1.Deployment](factory)
	d.sites, d.webs = sites.Lister(), webs.Lister()
	cfg := rest.CopyConfig(d.Config)
	cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return pausing{next, d} }
	if d.own, err = client.New(cfg, clientscheme.Scheme, client.Options{Observer: factory, FieldOwner: "website"}); err != nil {
		t.Fatal(err)
	}
	c := reconcile.For(sites, d.reconcile, opts)
	d.source = source.Kind(webs, func(kube.Object) iter.Seq[reconcile.Key] {
		return func(yield func(reconcile.Key) bool) { yield(duetKey) }
	})
	c.Watch(d.source)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{factory.Run, c.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	synctest.Wait()
	return d
}

// pausing makes requests wait before and after the server, so that others come between.
type pausing struct {
	http.RoundTripper
	*duet
}

func (p pausing) RoundTrip(req *http.Request) (*http.Response, error) {
	p.pause()
	defer p.pause()
	return p.RoundTripper.RoundTrip(req)
}

func (d *duet) now() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.moment++
	return d.moment
}

// runs returns how many reconciles have begun.
func (d *duet) runs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.began)
}

func (d *duet) removed(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone[uid] = true
}

func (d *duet) reconcile(ctx context.Context, site *corev1.ConfigMap) (reconcile.Result, error) {
	l := look{moment: d.now(), site: kube.ParseVersion(site.ResourceVersion)}
	if web, err := d.webs.Get(kube.KeyOf(wish(0))); err == nil {
		l.web, l.uid = kube.ParseVersion(web.ResourceVersion), web.UID
	}
	d.mu.Lock()
	d.began = append(d.began, l)
	d.mu.Unlock()
	return reconcile.Result{}, d.act(ctx, d, site)
}

// sees reports whether a reconcile that began after w saw it.
func (d *duet) sees(w foreignWrite) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	met := false // others may make and remove an object before a handler is given it
	for _, l := range d.began {
		met = met || l.uid == w.uid
		version := l.web
		if w.ofSite {
			version = l.site
		}
		if l.moment > w.moment && (version >= w.version && !w.removed || version == 0 && (w.removed || d.gone[w.uid]) || w.removed && version > w.version) {
			return true
		}
	}
	return d.gone[w.uid] && !met
}

// foreign makes a write of others.
func (d *duet) foreign(r *rand.Rand) (foreignWrite, bool) {
	ctx, web := d.t.Context(), wish(0)
	w := foreignWrite{moment: d.now()}
	var err error
	switch n := r.IntN(6); n {
	case 0:
		w.what = "label"
		err = d.Client.Patch(ctx, web, client.MergePatch([]byte(fmt.Sprintf(`{"metadata":{"labels":{"theirs":"%d"}}}`, d.now()))))
	case 1:
		w.what = "replicas"
		err = d.Client.Patch(ctx, web, client.MergePatch([]byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, 10+d.now()%90))))
	case 2:
		w.what = "status"
		err = d.Client.Status().Patch(ctx, web, client.MergePatch([]byte(fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, d.now()))))
	case 3:
		w.what, w.ofSite = "site", true
		site := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
		err = d.Client.Patch(ctx, site, client.MergePatch([]byte(fmt.Sprintf(`{"data":{"theirs":"%d"}}`, d.now()))))
		w.uid, w.version = site.UID, kube.ParseVersion(site.ResourceVersion)
	case 4:
		w.what, w.removed = "delete", true
		var is appsv1.Deployment
		if err = d.Client.Get(ctx, kube.KeyOf(web), &is); err == nil {
			err = d.Client.Delete(ctx, &is, client.Preconditions{UID: is.UID, ResourceVersion: is.ResourceVersion}, client.Propagation("Background"))
		}
		w.uid, w.version = is.UID, kube.ParseVersion(is.ResourceVersion)
	case 5:
		w.what = "create"
		err = d.Client.Create(ctx, web)
	}
	if err != nil {
		if !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			d.t.Error(err)
		}
		return w, false
	}
	if w.removed {
		d.removed(w.uid)
	} else if !w.ofSite {
		w.uid, w.version = web.UID, kube.ParseVersion(web.ResourceVersion)
	}
	return w, true
}

// randomly makes some of the writes that a reconcile can make, and fails at times.
func randomly(r *rand.Rand) func(ctx context.Context, d *duet, site *corev1.ConfigMap) error {
	return func(ctx context.Context, d *duet, site *corev1.ConfigMap) error {
		for range r.IntN(3) {
			web, missing := d.webs.Get(kube.KeyOf(wish(0)))
			var err error
			switch n := r.IntN(7); {
			case n == 0:
				to := kube.Copy(site)
				to.Data = map[string]string{"ours": fmt.Sprint(r.IntN(3))}
				_, err = d.own.PatchChanges(ctx, site, to)
			case n == 1:
				to := kube.Copy(site)
				to.Data = map[string]string{"ours": fmt.Sprint(r.IntN(3))}
				_, err = d.own.PatchChanges(ctx, site, to, client.Preconditions{ResourceVersion: site.ResourceVersion})
			case n == 2 && missing == nil:
				to := kube.Copy(web)
				to.Spec.Replicas = new(int32(r.IntN(3)))
				err = d.own.Update(ctx, to)
			case n == 3 && missing == nil:
				if err = d.own.DeleteChild(ctx, web); err == nil {
					d.removed(web.UID)
				}
			case n == 4 && missing == nil:
				if err = d.own.Delete(ctx, web, client.Preconditions{UID: web.UID}); err == nil {
					d.removed(web.UID)
				}
			case n == 5 && missing != nil:
				err = d.own.Create(ctx, wish(r.IntN(6)))
			default:
				err = d.own.ApplyChild(ctx, wish(r.IntN(6)), "", nil)
			}
			if err != nil {
				return reconcile.IgnoreNotFound(err)
			}
		}
		return nil
	}
}

// Each write of others is seen by a reconcile that begins after it, whatever writes of the
// reconciles are before, after and around it, and however late watch and answers are.
// FLYBALL_OWN_EVENTS_SEEDS is the number of seeds.
func TestOwnEvents_EachForeignWriteWakes_R15(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 40
	}
	if text := os.Getenv("FLYBALL_OWN_EVENTS_SEEDS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		seeds = n
	}
	var own, written, reconciles uint64
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			d := newDuet(t, seed, randomly(rand.New(rand.NewPCG(seed, 2))), reconcile.Options{OmitOwnEvents: true})
			var writes []foreignWrite
			for range 10 {
				late := r.IntN(2) == 0
				if late {
					d.LagTo(d.Revision())
				}
				for range 1 + r.IntN(3) {
					if w, done := d.foreign(r); done {
						writes = append(writes, w)
					}
					time.Sleep(time.Duration(r.IntN(8)) * time.Millisecond)
				}
				if late {
					d.CatchUp()
				}
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			}
			time.Sleep(time.Minute)
			for _, w := range writes {
				if !d.sees(w) {
					t.Errorf("seed %d: no reconcile began that saw the foreign write %+v\nreconciles: %+v", seed, w, d.began)
				}
			}
			own, written, reconciles = own+d.source.Snapshot().Own, written+uint64(len(writes)), reconciles+uint64(d.runs())
		})
	}
	t.Logf("%d foreign writes, %d reconciles, %d own events of the Deployment", written, reconciles, own)
	if own < seeds {
		t.Errorf("%d own events came in %d seeds; the test tests too little", own, seeds)
	}
}

func TestOwnEvents_WakesUnlessOmitted_R15(t *testing.T) {
	steps := func(ctx context.Context, d *duet, site *corev1.ConfigMap) error {
		web, err := d.webs.Get(kube.KeyOf(wish(0)))
		switch {
		case apierrors.IsNotFound(err):
			return d.own.ApplyChild(ctx, wish(0), "", nil)
		case web.Spec.Replicas == nil || *web.Spec.Replicas != 2:
			return d.own.ApplyChild(ctx, wish(2), "", nil)
		}
		return nil
	}
	for omit, want := range map[bool]int{false: 3, true: 1} {
		synctest.Test(t, func(t *testing.T) {
			d := newDuet(t, 0, steps, reconcile.Options{OmitOwnEvents: omit})
			time.Sleep(time.Minute)
			if got := d.runs(); got != want {
				t.Errorf("OmitOwnEvents %t: %d reconciles, want %d", omit, got, want)
			}
		})
	}
}

// Each write is one event, first by its answer and then by the watch, and a write that changes
// nothing is none: after its last change a reconcile runs once more, and not again.
func TestOwnEvents_WakesOncePerChange_R15(t *testing.T) {
	writes := map[string]func(ctx context.Context, d *duet, site *corev1.ConfigMap) error{
		"no write": func(context.Context, *duet, *corev1.ConfigMap) error { return nil },
		"update": func(ctx context.Context, d *duet, site *corev1.ConfigMap) error {
			to := kube.Copy(site)
			to.Data = map[string]string{"ours": "1"}
			return d.own.Update(ctx, to)
		},
		"changes": func(ctx context.Context, d *duet, site *corev1.ConfigMap) error {
			to := kube.Copy(site)
			to.Data = map[string]string{"ours": "1"}
			_, err := d.own.PatchChanges(ctx, site, to)
			return err
		},
		"merge patch": func(ctx context.Context, d *duet, site *corev1.ConfigMap) error {
			return d.own.Patch(ctx, kube.Copy(site), client.MergePatch([]byte(`{"data":{"ours":"1"}}`)))
		},
		"apply": func(ctx context.Context, d *duet, _ *corev1.ConfigMap) error {
			return d.own.Apply(ctx, wish(1), client.FieldOwner("website"))
		},
		"apply of a child": func(ctx context.Context, d *duet, _ *corev1.ConfigMap) error {
			return d.own.ApplyChild(ctx, wish(1), "", nil)
		},
	}
	for name, write := range writes {
		synctest.Test(t, func(t *testing.T) {
			d := newDuet(t, 0, write, reconcile.Options{})
			time.Sleep(time.Minute)
			want := 2 // the first changes something
			if name == "no write" {
				want = 1
			}
			if got := d.runs(); got != want {
				t.Errorf("%s: %d reconciles, want %d", name, got, want)
			}
		})
	}
}

// What a resync shows is logged once, if nothing but own writes has happened: here not for the
// reconcile that another's change of the site woke.
func TestOwnEvents_ResyncShowsWhoStopsBeforeItsWorkIsDone_V24(t *testing.T) {
	child := func(ctx context.Context, d *duet, site *corev1.ConfigMap) error {
		return d.own.ApplyChild(ctx, wish(len(site.Data)), "", nil)
	}
	steps := func(ctx context.Context, d *duet, site *corev1.ConfigMap) error {
		if len(site.Annotations) < 3 {
			to := kube.Copy(site)
			metav1.SetMetaDataAnnotation(&to.ObjectMeta, fmt.Sprint(len(site.Annotations)), "")
			return d.own.Update(ctx, to)
		}
		return nil
	}
	for _, row := range []struct {
		name  string
		act   func(ctx context.Context, d *duet, site *corev1.ConfigMap) error
		opts  reconcile.Options
		lines int
	}{
		{"one pass", child, reconcile.Options{OmitOwnEvents: true}, 0},
		{"one pass, and its predicate drops what others change", child, reconcile.Options{OmitOwnEvents: true, Predicate: source.LabelsChanged}, 0},
		{"a step for each run", steps, reconcile.Options{OmitOwnEvents: true}, 1},
		{"a step for each run, and own events wake", steps, reconcile.Options{}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var lines []string
			row.opts.Logger = funcr.New(func(prefix, args string) {
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(args, "done too early") {
					lines = append(lines, args)
				}
			}, funcr.Options{})
			d := newDuetWith(t, 0, row.act, row.opts, informer.Options{Resync: time.Hour})
			time.Sleep(30 * time.Minute) // between two resyncs
			for n := range 3 {
				site := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
				if err := d.Client.Patch(t.Context(), site, client.MergePatch([]byte(fmt.Sprintf(`{"data":{"%d":""}}`, n)))); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(lines) != row.lines {
				t.Errorf("%s: lines %q, want %d", row.name, lines, row.lines)
			}
		})
	}
}

func TestOwnEvents_ApplyOverAnUnseenWriteWakes_R15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		apply := func(ctx context.Context, d *duet, site *corev1.ConfigMap) error {
			return d.own.ApplyChild(ctx, wish(len(site.Data)), "", nil)
		}
		d := newDuet(t, 0, apply, reconcile.Options{OmitOwnEvents: true})
		site := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
		runs := func(foreign func() error) int {
			t.Helper()
			before := d.runs()
			d.LagKindTo(schema.GroupResource{Group: "apps", Resource: "deployments"}, d.Revision())
			if err := foreign(); err != nil {
				t.Fatal(err)
			}
			if err := d.Client.Patch(t.Context(), site, client.MergePatch([]byte(fmt.Sprintf(`{"data":{"%d":""}}`, d.now())))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			d.CatchUpKind(schema.GroupResource{Group: "apps", Resource: "deployments"})
			time.Sleep(time.Second)
			return d.runs() - before
		}
		time.Sleep(time.Second)
		if got := runs(func() error { return nil }); got != 1 {
			t.Errorf("%d runs for a change of the site, want 1: what it applies is its own event", got)
		}
		label := func() error {
			return d.Client.Patch(t.Context(), wish(0), client.MergePatch([]byte(`{"metadata":{"labels":{"theirs":"x"}}}`)))
		}
		if got := runs(label); got != 2 {
			t.Errorf("%d runs for a change of the site while the watch did not show a foreign write, want 2: the answer to the apply shows it too", got)
		}
	})
}
