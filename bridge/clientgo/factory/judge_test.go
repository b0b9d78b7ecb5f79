// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo/factory"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// Every notification, for handlers of client-go's kind and of flyball's, is
// compared with etcd's history while connections break, the server is killed
// and the history is compacted: no state is invented or returns after a newer
// one, each update begins where the previous one ended, and the last state is
// etcd's.
func TestJudge_NotificationsAreEtcdsHistory_G13(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	env, err := envtest.Start(ctx, envtest.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	api := kubernetes.NewForConfigOrDie(env.Config())
	_, err = api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "judged"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	h := &etcdHistory{}
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	base, client := env.Etcd()
	watch.Go(func() {
		if err := watchEtcd(watching, base, client, "/registry/configmaps/judged/", h); err != nil {
			t.Error(err)
		}
	})
	defer watch.Wait()
	defer stopWatching()

	line := &line{}
	cfg := env.Config()
	cfg.Dial = line.dial
	flyball, err := informer.NewSharedInformerFactory(cfg, clientscheme.Scheme, informer.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	scope := informer.Scope{Namespaces: []string{"judged"}}
	shared := factory.New(flyball, factory.Options{RunOnStart: true, Scope: scope})
	witnesses := []*witness{
		{name: "client-go's face", every: true, again: true},
		{name: "flyball's, states"},
		{name: "flyball's, every event", every: true},
		{name: "flyball's, with what lists have unchanged", again: true},
	}
	if _, err := shared.Core().V1().ConfigMaps().Informer().AddEventHandler(handlerOf(witnesses[0])); err != nil {
		t.Fatal(err)
	}
	own := informer.For[*corev1.ConfigMap](flyball, scope)
	for _, w := range witnesses[1:] {
		_, err := own.AddHandler(func(e kube.Event[*corev1.ConfigMap]) { w.hear(noteOf(e)) },
			informer.HandlerOptions{EveryEvent: w.every, Relists: w.again})
		g.Expect(err).NotTo(HaveOccurred())
	}
	running, stop := context.WithCancel(ctx)
	shared.StartWithContext(running)
	defer shared.Shutdown()
	defer stop()
	g.Expect(shared.WaitForCacheSyncWithContext(ctx).AsError()).To(Succeed())

	author := &author{api: api, random: rand.New(rand.NewPCG(1, 2))}
	agree := func() {
		t.Helper()
		for _, w := range witnesses {
			g.Eventually(func() bool { return author.written() <= h.reached() && maps.Equal(w.present(), h.present()) }).
				WithTimeout(2*time.Minute).Should(BeTrue(), "%s does not end in the state of etcd", w.name)
		}
	}
	author.write(ctx, t, 200)
	agree()
	calm := h.reached()
	for range 4 {
		author.write(ctx, t, 25)
		line.cut()
		author.write(ctx, t, 25)
	}
	agree()
	for range 2 {
		line.close(true)
		author.write(ctx, t, 15) // no watch sees these writes
		g.Eventually(h.reached).WithTimeout(time.Minute).Should(BeNumerically(">=", author.written()))
		g.Expect(env.KillAPIServer()).To(Succeed())
		g.Expect(env.Compact(ctx)).To(Succeed())
		g.Expect(env.StartAPIServer(ctx)).To(Succeed())
		line.close(false)
		author.write(ctx, t, 40)
		agree()
	}
	for i, w := range witnesses {
		wrong, told, repeated := w.judge(h, calm)
		for _, text := range wrong {
			t.Error(text)
		}
		t.Logf("%s: %d notifications, %d of them of an unchanged object", w.name, told, repeated)
		if i == 0 && repeated == 0 {
			t.Errorf("%s: no list gave an unchanged object again, so no watch was broken for good", w.name)
		}
	}
}

// line is the network of the informers.
type line struct {
	mu struct {
		sync.Mutex
		closed bool
		open   map[net.Conn]bool
	}
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if l.isClosed() {
		return nil, errors.New("the line is closed")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.open == nil {
		l.mu.open = make(map[net.Conn]bool)
	}
	l.mu.open[conn] = true
	return conn, nil
}

func (l *line) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.closed
}

// cut breaks all connections.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.mu.open {
		_ = conn.Close()
	}
	l.mu.open = nil
}

// close blocks new connections until it is called with false.
func (l *line) close(closed bool) {
	l.mu.Lock()
	l.mu.closed = closed
	l.mu.Unlock()
	l.cut()
}

// author writes ConfigMaps through a separate connection.
type author struct {
	api    kubernetes.Interface
	random *rand.Rand
	values int
	last   int64
}

// written returns the revision of the last write.
func (a *author) written() int64 { return a.last }

// write creates, changes and deletes ConfigMaps at random.
func (a *author) write(ctx context.Context, t *testing.T, times int) {
	t.Helper()
	objects := a.api.CoreV1().ConfigMaps("judged")
	for range times {
		name := fmt.Sprint("m-", a.random.IntN(40))
		a.values++
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"v": strconv.Itoa(a.values)}}
		if a.random.IntN(4) == 0 {
			if err := objects.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			continue
		}
		got, err := objects.Update(ctx, m, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			got, err = objects.Create(ctx, m, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		a.last, _ = strconv.ParseInt(got.ResourceVersion, 10, 64)
	}
}

func stateOf(m *corev1.ConfigMap) *state {
	if m == nil {
		return nil
	}
	revision, _ := strconv.ParseInt(m.ResourceVersion, 10, 64)
	return &state{revision: revision, uid: string(m.UID), value: m.Data["v"]}
}

func noteOf(e kube.Event[*corev1.ConfigMap]) note {
	return note{key: e.Key.Name, old: stateOf(e.Old), new: stateOf(e.New), unseen: e.FinalStateUnknown}
}

func handlerOf(w *witness) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			m := obj.(*corev1.ConfigMap)
			w.hear(note{key: m.Name, new: stateOf(m)})
		},
		UpdateFunc: func(before, after any) {
			m := after.(*corev1.ConfigMap)
			w.hear(note{key: m.Name, old: stateOf(before.(*corev1.ConfigMap)), new: stateOf(m)})
		},
		DeleteFunc: func(obj any) {
			unknown, unseen := obj.(cache.DeletedFinalStateUnknown)
			if unseen {
				obj = unknown.Obj
			}
			m := obj.(*corev1.ConfigMap)
			w.hear(note{key: m.Name, old: stateOf(m), unseen: unseen})
		},
	}
}
