// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

const (
	late   = 400 * time.Millisecond // how late watches are
	trials = 30                     // per row
)

// behind is a process that writes, and what its specs read. Its watches are late.
type behind struct {
	*process
	ns          string
	maps        *informer.SharedInformer[*corev1.ConfigMap]
	pods        *informer.SharedInformer[*corev1.Pod]
	deployments *informer.SharedInformer[*appsv1.Deployment]
	widgets     *informer.SharedInformer[*unstructured.Unstructured]
	clientset   kubernetes.Interface
	protobuf    kubernetes.Interface
	dynamic     dynamic.Interface
	metadata    metadata.Interface
}

func newBehind(ctx context.Context) *behind {
	GinkgoHelper()
	w := &behind{ns: newNamespace(ctx)}
	w.process = newProcess(newLagging(env.Config(), late), w.ns)
	w.maps = informer.For[*corev1.ConfigMap](w.Informers())
	w.pods = informer.For[*corev1.Pod](w.Informers())
	w.deployments = informer.For[*appsv1.Deployment](w.Informers())
	w.widgets = informer.ForKind(w.Informers(), group.WithKind("Widget"))
	w.clientset = kubernetes.NewForConfigOrDie(w.Config())
	asProtobuf := w.Config()
	asProtobuf.ContentType = "application/vnd.kubernetes.protobuf"
	w.protobuf = kubernetes.NewForConfigOrDie(asProtobuf)
	w.dynamic = dynamic.NewForConfigOrDie(w.Config())
	w.metadata = metadata.NewForConfigOrDie(w.Config())
	return w
}

// trial is one write of a row, to an object with the trial's name.
type trial struct {
	*behind
	name string
}

func (t *trial) key() kube.Key { return kube.Key{Namespace: t.ns, Name: t.name} }

func (t *trial) configMap(value string) *corev1.ConfigMap {
	return configMap(t.ns, t.name, map[string]string{"v": value})
}

// cached returns a copy of the trial's ConfigMap in the Lister.
func (t *trial) cached() (*corev1.ConfigMap, error) {
	cm, err := t.maps.Lister().Get(t.key())
	if err != nil {
		return nil, err
	}
	return kube.Copy(cm), nil
}

// row is a kind of write. A read is stale if shows is false.
type row struct {
	name     string
	promises []string
	exists   func(t *trial) []kube.Object
	dying    bool // and is being deleted
	lost     bool // the answer
	write    func(ctx context.Context, t *trial) error
	shows    func(t *trial) (bool, error)
}

// result is what the trials of a row have shown.
type result struct {
	stale   int
	reads   []time.Duration // each trial's first read
	pending []time.Duration // until a read that was pending was answered
}

// read reads until the read is not pending.
func (r *row) read(ctx context.Context, t *trial) (shows bool, pending time.Duration, err error) {
	for began := time.Now(); ; pending = time.Since(began) {
		shows, err := r.shows(t)
		unknown, ok := errors.AsType[*kube.NotSettledError](err)
		if !ok {
			return shows, pending, err
		}
		known := make(chan struct{})
		stop := unknown.WhenPassed(func() { close(known) })
		select {
		case <-known:
		case <-ctx.Done():
			stop()
			return false, 0, fmt.Errorf("still pending: %w", err)
		}
	}
}

// try runs one trial: a write, a read at once, and reads until the watch has certainly
// delivered all states. Only one trial at a time has the turn, up to its first answer.
func (r *row) try(ctx context.Context, t *trial, turn *sync.Mutex) (res result, err error) {
	turn.Lock()
	if r.lost {
		err = r.write(losing(ctx), t)
	} else {
		err = r.write(ctx, t)
	}
	began := time.Now()
	shows, pending, readErr := r.read(ctx, t)
	took := time.Since(began)
	turn.Unlock()
	answered := apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
	switch {
	case r.lost && (err == nil || answered):
		return res, fmt.Errorf("the answer was not lost: %v", err)
	case !r.lost && err != nil:
		return res, err
	}
	if pending > 0 {
		res.pending = append(res.pending, pending)
	} else {
		res.reads = append(res.reads, took)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; readErr == nil; shows, _, readErr = r.read(ctx, t) {
		if !shows {
			res.stale = 1
			return res, nil
		}
		if time.Since(began) > late+late/4 {
			return res, nil
		}
		<-tick.C
	}
	return res, readErr
}

// run runs all trials.
func (r *row) run(ctx context.Context, all []*trial) result {
	GinkgoHelper()
	var (
		group sync.WaitGroup
		turn  sync.Mutex
		mu    sync.Mutex
		sum   result
		errs  []error
	)
	for _, t := range all {
		group.Go(func() {
			res, err := r.try(ctx, t, &turn)
			mu.Lock()
			defer mu.Unlock()
			sum.stale += res.stale
			sum.reads = append(sum.reads, res.reads...)
			sum.pending = append(sum.pending, res.pending...)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", t.name, err))
			}
		})
	}
	group.Wait()
	Expect(errors.Join(errs...)).NotTo(HaveOccurred())
	return sum
}

func (r result) String() string {
	return fmt.Sprintf("stale %d of %d; %d answered at once, median %v; %d pending, median %v, longest %v", r.stale, trials,
		len(r.reads), median(r.reads), len(r.pending), median(r.pending), longest(r.pending))
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[len(all)/2].Round(100 * time.Nanosecond)
}

func longest(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Max(all).Round(100 * time.Nanosecond)
}

var _ = Describe("a read after an own write, with a watch that is 400 ms late,", Ordered, Label("consistency"), func() {
	var (
		w   *behind
		all = map[*row][]*trial{}
	)
	BeforeAll(func(ctx context.Context) {
		w = newBehind(ctx)
		w.start()
		var objects [4][]kube.Object
		for i, r := range rows {
			for n := range trials {
				t := &trial{behind: w, name: fmt.Sprintf("row-%d-%d", i, n)}
				all[r] = append(all[r], t)
				if r.exists == nil {
					continue
				}
				for _, obj := range r.exists(t) {
					objects[n%len(objects)] = append(objects[n%len(objects)], obj)
					if r.dying {
						obj.SetAnnotations(map[string]string{"dying": "true"})
					}
				}
			}
		}
		done := make(chan error, len(objects))
		for _, some := range objects {
			go func() {
				for _, obj := range some {
					err := outside.Create(ctx, obj)
					if err == nil && obj.GetAnnotations()["dying"] != "" {
						err = outside.Delete(ctx, obj)
					}
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range objects {
			Eventually(done).WithTimeout(time.Minute).Should(Receive(BeNil()))
		}
		Eventually(func() map[string]string { return versions(w.maps.Lister()) }).Should(Equal(live[*corev1.ConfigMap](ctx, w.ns)))
		Eventually(func() map[string]string { return versions(w.pods.Lister()) }).Should(Equal(live[*corev1.Pod](ctx, w.ns)))
		Eventually(func() map[string]string { return versions(w.deployments.Lister()) }).Should(Equal(live[*appsv1.Deployment](ctx, w.ns)))
		Eventually(func() map[string]string { return versions(w.widgets.Lister()) }).Should(Equal(live[*widget](ctx, w.ns)))
	})
	AfterAll(func() {
		Expect(w.complaints()).To(BeEmpty())
		w.stop()
	})

	It("is stale after the write of another process: the watch is late indeed", func(ctx context.Context) {
		t := &trial{behind: w, name: "control"}
		began := time.Now()
		Expect(outside.Create(ctx, t.configMap("2"))).To(Succeed())
		Eventually(isChanged).WithArguments(t).WithPolling(time.Millisecond).Should(BeTrue())
		Expect(time.Since(began)).To(BeNumerically(">=", late))
		var reads []time.Duration
		for range trials {
			began := time.Now()
			Expect(w.Client().Get(ctx, t.key(), &corev1.ConfigMap{})).To(Succeed())
			reads = append(reads, time.Since(began))
		}
		AddReportEntry("consistency", fmt.Sprintf("a read from the server: median %v, longest %v", median(reads), longest(reads)))
	})

	for _, r := range rows {
		It(fmt.Sprintf("shows it: %s (%s)", r.name, strings.Join(r.promises, " ")), Label(r.promises...), func(ctx context.Context) {
			res := r.run(ctx, all[r])
			AddReportEntry("consistency", r.name+": "+res.String())
			Expect(res.stale).To(BeZero(), "reads that show a state older than the own write")
		}, SpecTimeout(30*time.Second))
	}
})

func versions[T kube.Object](l informer.Lister[T]) map[string]string {
	out := map[string]string{}
	for obj := range l.All() {
		if obj.GetName() != "kube-root-ca.crt" {
			out[obj.GetName()] = obj.GetResourceVersion()
		}
	}
	return out
}
