// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

const (
	parentOf    = "integration.flyball.dev/parent" // label of a child
	parentLabel = "integration.flyball.dev/is"     // label of parents
)

// parents is a controller that lists the children of a parent and creates one if there is
// none, with a generated name. A read that is too old makes a second child.
type parents struct {
	// lost: the answer to the first create for each parent is lost.
	lost bool
	// made is called after a create for a parent; may be nil.
	made func(parent string)
	mu   struct {
		sync.Mutex
		tried   map[string]int       // creates by parent
		pending map[string]time.Time // the first read that was pending
		waited  []time.Duration      // until it was answered
		first   map[string]firstRead // by parent
	}
}

// firstRead is the first answer of a list of children.
type firstRead struct {
	at       time.Time
	children int
}

// add adds the controller to m.
func (p *parents) add(m *manager.Manager) *informer.SharedInformer[*corev1.Secret] {
	GinkgoHelper()
	p.mu.tried, p.mu.pending, p.mu.first = map[string]int{}, map[string]time.Time{}, map[string]firstRead{}
	maps, secrets := informer.For[*corev1.ConfigMap](m.Informers()), informer.For[*corev1.Secret](m.Informers())
	c := reconcile.New("parents", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		parent, err := maps.Lister().Get(key)
		if err != nil || parent.Labels[parentLabel] == "" {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		children, err := secrets.Lister().List(informer.QueryOptions{Namespace: key.Namespace, Selector: childrenOf(key.Name)})
		if p.read(key.Name, len(children), err); err != nil || len(children) > 0 {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, p.create(ctx, m.Client(), key)
	}, reconcile.Options{Workers: 4})
	c.Watch(source.Kind(maps, source.Self))
	Expect(m.Add(c)).To(Succeed())
	return secrets
}

func childrenOf(parent string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{parentOf: parent})
}

// read records the answer of a list.
func (p *parents) read(parent string, children int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, unknown := errors.AsType[*kube.NotSettledError](err); unknown {
		if p.mu.pending[parent].IsZero() {
			p.mu.pending[parent] = time.Now()
		}
		return
	}
	if since, was := p.mu.pending[parent]; was && !since.IsZero() {
		p.mu.waited = append(p.mu.waited, time.Since(since))
		p.mu.pending[parent] = time.Time{}
	}
	if _, known := p.mu.first[parent]; !known {
		p.mu.first[parent] = firstRead{time.Now(), children}
	}
}

func (p *parents) create(ctx context.Context, c *client.Client, key reconcile.Key) error {
	p.mu.Lock()
	p.mu.tried[key.Name]++
	if p.lost && p.mu.tried[key.Name] == 1 {
		ctx = losing(ctx)
	}
	p.mu.Unlock()
	err := c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, GenerateName: "child-", Labels: map[string]string{parentOf: key.Name},
	}})
	if p.made != nil {
		p.made(key.Name)
	}
	return err
}

func (p *parents) firstOf(parent string) (firstRead, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, ok := p.mu.first[parent]
	return first, ok
}

func aParent(namespace, name string) *corev1.ConfigMap {
	cm := configMap(namespace, name, nil)
	cm.Labels = map[string]string{parentLabel: "parent"}
	return cm
}

// childrenIn counts the children on the server by parent.
func childrenIn(ctx context.Context, namespace string) map[string]int {
	GinkgoHelper()
	all := map[string]int{}
	for s, err := range client.List[*corev1.Secret](ctx, outside, client.InNamespace(namespace)) {
		Expect(err).NotTo(HaveOccurred())
		all[s.Labels[parentOf]]++
	}
	return all
}

var _ = Describe("a controller that creates a child with generateName, with a watch that is 400 ms late,", Label("consistency"), func() {
	It("makes no second one if the answer is lost (R12 I12 C14)", Label("R12", "I12", "C14"), func(ctx context.Context) {
		ns := newNamespace(ctx)
		w := newProcess(newLagging(env.Config(), late), ns)
		p := &parents{lost: true}
		secrets := p.add(w.Manager)
		w.start()
		Eventually(secrets.Synced()).Should(BeClosed())
		want := map[string]int{}
		for n := range trials {
			name := fmt.Sprintf("parent-%d", n)
			Expect(outside.Create(ctx, aParent(ns, name))).To(Succeed())
			want[name] = 1
		}
		Eventually(func() map[string]int {
			have := map[string]int{}
			for s := range secrets.Lister().All() {
				have[s.Labels[parentOf]]++
			}
			return have
		}).Should(Equal(want))
		Consistently(childrenIn).WithArguments(ctx, ns).WithTimeout(2 * late).WithPolling(late / 2).Should(Equal(want))
		w.stop()
		stale := 0
		for _, n := range p.mu.tried {
			stale += n - 1
		}
		AddReportEntry("consistency", fmt.Sprintf("create with generateName, answer lost: stale %d of %d, second children 0; %d pending, median %v, longest %v",
			stale, trials, len(p.mu.waited), median(p.mu.waited), longest(p.mu.waited)))
		Expect(stale).To(BeZero())
	}, SpecTimeout(time.Minute))
})

// contender is a process that takes part in an election.
type contender struct {
	*manager.Manager
	parents
	secrets *informer.SharedInformer[*corev1.Secret]
	cancel  context.CancelFunc
	done    chan error
}

// contend starts a contender.
func contend(cfg *rest.Config, namespace string, made func(*contender, string)) *contender {
	GinkgoHelper()
	c := &contender{done: make(chan error, 1)}
	var err error
	c.Manager, err = manager.New(manager.Options{
		Config: cfg, Scheme: scheme, Logger: GinkgoLogr, HealthAddress: "0", MetricsAddress: "0",
		LeaderElection: &manager.LeaderElection{ID: "parents", Namespace: namespace},
		Informers:      informer.Options{Namespaces: []string{namespace}},
	})
	Expect(err).NotTo(HaveOccurred())
	c.made = func(parent string) { made(c, parent) }
	c.secrets = c.parents.add(c.Manager)
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	DeferCleanup(cancel)
	go func() { c.done <- c.Run(ctx) }()
	return c
}

// ends waits for the end of Run.
func (c *contender) ends() {
	GinkgoHelper()
	c.cancel()
	Eventually(c.done).WithTimeout(20 * time.Second).Should(Receive(BeNil()))
}

var _ = Describe("a new leader with a watch that is 400 ms late", Label("consistency"), func() {
	It("sees what the old one wrote last, and makes no second child (M13)", Label("M13"), func(ctx context.Context) {
		const chains = 5
		cfg := newLagging(env.Config(), late)
		var (
			group sync.WaitGroup
			mu    sync.Mutex
			stale int
			took  []time.Duration
		)
		namespaces := make([]string, chains)
		for i := range chains {
			ns := newNamespace(ctx)
			namespaces[i] = ns
			group.Go(func() {
				defer GinkgoRecover()
				stopped := make(chan time.Time, 1)
				made := func(c *contender, parent string) {
					stopped <- time.Now()
					c.cancel() // at once: its watch has not shown the child
				}
				leader := contend(cfg, ns, made)
				Eventually(leader.Elected()).Should(BeClosed())
				for n := range trials / chains {
					standby := contend(cfg, ns, made)
					Eventually(standby.secrets.Synced()).Should(BeClosed())
					name := fmt.Sprintf("parent-%d", n)
					Expect(outside.Create(ctx, aParent(ns, name))).To(Succeed())
					var since time.Time
					Eventually(stopped).Should(Receive(&since))
					leader.ends()
					var first firstRead
					Eventually(func() (ok bool) { first, ok = standby.firstOf(name); return ok }).WithPolling(time.Millisecond).Should(BeTrue())
					mu.Lock()
					took = append(took, first.at.Sub(since))
					if first.children != 1 {
						stale++
					}
					mu.Unlock()
					leader = standby
				}
				leader.ends()
			})
		}
		group.Wait()
		second := 0
		for _, ns := range namespaces {
			children := childrenIn(ctx, ns)
			Expect(children).To(HaveLen(trials / chains))
			for _, n := range children {
				second += n - 1
			}
		}
		AddReportEntry("consistency", fmt.Sprintf("hand-over: stale %d of %d, second children %d; from the write to the next leader's read: median %v, longest %v",
			stale, trials, second, median(took), longest(took)))
		Expect(took).To(HaveLen(trials))
		Expect(stale).To(BeZero())
		Expect(second).To(BeZero())
	}, SpecTimeout(time.Minute))
})
