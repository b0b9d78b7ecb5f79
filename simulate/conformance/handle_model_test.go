// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// believer is a handler that believes what it is told: what it has in the end is
// what its handle must see.
type believer struct {
	name   string
	handle *informer.SharedInformer[cmap]
	scopes []informer.Scope
	mu     struct {
		sync.Mutex
		holds map[kube.Key]string
		fault string
	}
}

func newBeliever(name string, i *informer.SharedInformer[cmap], scopes []informer.Scope, every bool) (*believer, error) {
	b := &believer{name: name, handle: i, scopes: scopes}
	b.mu.holds = map[kube.Key]string{}
	_, err := i.AddHandler(b.told, informer.HandlerOptions{EveryEvent: every})
	return b, err
}

func (b *believer) told(e kube.Event[cmap]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, held := b.mu.holds[e.Key]
	if held == (e.Type == kube.Added) && b.mu.fault == "" {
		b.mu.fault = fmt.Sprintf("%s %s, but it had it: %v", e.Type, e.Key, held)
	}
	if e.Type == kube.Deleted {
		delete(b.mu.holds, e.Key)
		return
	}
	b.mu.holds[e.Key] = e.New.Data["v"]
}

func (b *believer) has() (text, fault string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return sketchOf(b.mu.holds), b.mu.fault
}

func sketchOf(holds map[kube.Key]string) string {
	var out []string
	for key, value := range holds {
		out = append(out, key.String()+"="+value)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// wanted is the dull model: every object, held against every scope.
func wanted(all map[kube.Key]cmap, scopes []informer.Scope) string {
	out := map[kube.Key]string{}
	for key, cm := range all {
		for _, s := range scopes {
			in := len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, key.Namespace)
			if s.LabelSelector != "" {
				in = in && "l="+cm.Labels["l"] == s.LabelSelector
			}
			if in {
				out[key] = cm.Data["v"]
			}
		}
	}
	return sketchOf(out)
}

// Random programs of writes, changed scopes and releases: in the end each handle
// sees, and each handler was told, what its scopes have, and nothing else.
func TestInformer_HandlesSeeTheirScopesUnderRandomPrograms_I4_I10(t *testing.T) {
	choices := [][]informer.Scope{
		{{}},
		{scopeOf("a")},
		{scopeOf("b", "c")},
		{scopeOf("a", "b")},
		{{LabelSelector: "l=x"}},
		{{LabelSelector: "l=y", Namespaces: []string{"a", "c"}}},
		{{LabelSelector: "l=x", Namespaces: []string{"b"}}, scopeOf("c")},
	}
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				r := rand.New(rand.NewPCG(seed, 11))
				all := map[kube.Key]cmap{}
				var handlers []*believer
				var trace []string
				start(w)
				check := func() {
					for _, b := range handlers {
						got, fault := b.has()
						want := wanted(all, b.scopes)
						seen := map[kube.Key]string{}
						for cm := range b.handle.Lister().All() {
							seen[kube.KeyOf(cm)] = cm.Data["v"]
						}
						if got != want || fault != "" || sketchOf(seen) != want || !isClosed(b.handle.Synced()) {
							t.Fatalf("%s over %+v\n was told %q\n    sees %q\n    want %q\n synced %v; fault %q\n%s",
								b.name, b.scopes, got, sketchOf(seen), want, isClosed(b.handle.Synced()), fault, strings.Join(trace, "\n"))
						}
					}
				}
				for n := range 120 {
					switch op := r.IntN(12); {
					case op < 5:
						cm := configMap(string("pq"[r.IntN(2)]), fmt.Sprint(n))
						cm.Namespace = string("abc"[r.IntN(3)])
						cm.Labels = map[string]string{"l": string("xy"[r.IntN(2)])}
						all[kube.KeyOf(cm)] = cm
						w.Store(cm)
						trace = append(trace, fmt.Sprintf("put %s %v", kube.KeyOf(cm), cm.Labels))
					case op == 5 && len(all) > 0:
						keys := slices.SortedFunc(maps.Keys(all), func(a, b kube.Key) int { return strings.Compare(a.String(), b.String()) })
						key := keys[r.IntN(len(keys))]
						delete(all, key)
						w.Must(w.Remove(configMaps, key))
						trace = append(trace, "remove "+key.String())
					case op == 6 && len(handlers) < 5:
						scopes := choices[r.IntN(len(choices))]
						name := fmt.Sprintf("handle %d", n)
						b, err := newBeliever(name, informer.For[cmap](w.factory, scopes...), scopes, n%2 == 0)
						w.Must(err)
						handlers = append(handlers, b)
						trace = append(trace, fmt.Sprintf("%s %+v", name, scopes))
					case op == 7 && len(handlers) > 0:
						at := r.IntN(len(handlers))
						handlers[at].handle.Release()
						trace = append(trace, "release "+handlers[at].name)
						handlers = slices.Delete(handlers, at, at+1)
					case op < 11 && len(handlers) > 0:
						b := handlers[r.IntN(len(handlers))]
						b.scopes = choices[r.IntN(len(choices))]
						w.Must(b.handle.SetScopes(b.scopes...))
						trace = append(trace, fmt.Sprintf("%s now %+v", b.name, b.scopes))
					}
					if r.IntN(3) == 0 {
						pass(time.Duration(r.IntN(1500)) * time.Millisecond)
					}
					if n%10 == 9 {
						pass(5 * time.Second)
						check()
					}
				}
				for _, b := range handlers {
					b.handle.Release()
				}
				pass(time.Second)
				if n := len(w.factory.Snapshot()); n != 0 {
					t.Errorf("%d informers after the last release, want none", n)
				}
			})
		})
	}
}
