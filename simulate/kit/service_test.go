// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

// registry gives a number to whoever asks. If it is careful, it gives one with the same
// key the same number.
type registry struct {
	careful bool
	given   map[string]string
	next    int
}

// ServeHTTP registers the object of the header Key.
func (r *registry) ServeHTTP(w http.ResponseWriter, asked *http.Request) {
	key := asked.Header.Get("Key")
	if number, known := r.given[key]; known && r.careful {
		_, _ = fmt.Fprint(w, number)
		return
	}
	r.next++
	r.given[key] = fmt.Sprint(r.next)
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprint(w, r.next)
}

// registered is the object of a call that has made a registration.
func registered(r *http.Request, code int) string {
	if code != http.StatusCreated {
		return ""
	}
	return r.Header.Get("Key")
}

// setUpRegistrar registers each ConfigMap, and records its number in its data.
func setUpRegistrar(service http.RoundTripper) func(*manager.Manager) error {
	return func(mgr *manager.Manager) error {
		configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())
		c := reconcile.New("registrar", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			m, err := configMaps.Lister().Get(key)
			if err != nil || m.Data["number"] != "" || m.Namespace != "default" {
				return reconcile.Result{}, reconcile.IgnoreNotFound(err)
			}
			ask, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://registry.example/objects", nil)
			if err != nil {
				return reconcile.Result{}, err
			}
			ask.Header.Set("Key", string(m.UID))
			answer, err := (&http.Client{Transport: service}).Do(ask)
			if err != nil {
				return reconcile.Result{}, err
			}
			defer answer.Body.Close()
			var number string
			if _, err := fmt.Fscan(answer.Body, &number); err != nil || answer.StatusCode >= 300 {
				return reconcile.Result{}, fmt.Errorf("register: %s", answer.Status)
			}
			return reconcile.Result{}, mgr.Client().Patch(ctx, kube.Copy(m), client.MergePatch(map[string]any{"data": map[string]string{"number": number}}))
		}, reconcile.Options{})
		c.Watch(source.Kind(configMaps, source.Self))
		return mgr.Add(c)
	}
}

func registers(careful bool) func(*kit.World) {
	return func(w *kit.World) {
		service := w.Service("registry", &registry{careful: careful, given: map[string]string{}}, registered)
		w.Run(setUpRegistrar(service))
		w.Settled(func() error {
			for _, name := range []string{"m", "n"} {
				if m := configMap(name, nil); w.Get(m) && m.Data["number"] == "" {
					return fmt.Errorf("%s is not registered", name)
				}
			}
			return nil
		})
		w.Create(configMap("m", nil))
		w.Sleep(time.Second)
		w.Create(configMap("n", nil))
		w.Sleep(time.Second)
	}
}

// A call that is repeated because its answer was lost, or its process crashed before it
// recorded the answer, makes something twice, unless the service recognizes it. Calls and
// their faults are in the history.
func TestKit_ServiceMakesThingsOncePerObject_K15(t *testing.T) {
	for name, c := range map[string]struct {
		op    kit.Op
		codes []int
		says  string // in V25; empty: the call has no effect
	}{
		"crash after the call":     {kit.Crash(time.Second).AfterWrite("POST registry", 1), []int{0, 201, 201}, `registrar default/m, which met the fault "crash for 1s" after that`},
		"cut after the call":       {kit.Cut().AfterWrite("POST registry", 1), []int{0, 201, 201}, `which met the fault "cut" after that`},
		"lost answer":              {kit.LoseResponse().BeforeWrite("POST registry", 2), []int{201, 0, 201}, "registrar default/n, whose answer was lost"},
		"crash before the record":  {kit.Crash(time.Second).BeforeWrite("patch ConfigMap", 1), []int{201, 201, 201}, `registrar default/m, which met the fault "crash for 1s" after that`},
		"refused record":           {kit.Reject(1, 500).BeforeWrite("patch ConfigMap", 1), []int{201, 201, 201}, "registrar default/m, which then ended with"},
		"repeated by a proxy":      {kit.Repeat().BeforeWrite("POST registry", 1), []int{201, 201}, "makes something for"},
		"crash before the call":    {kit.Crash(time.Second).BeforeWrite("POST registry", 1), []int{201, 201}, ""},
		"refused call":             {kit.Reject(1, 503).BeforeWrite("POST registry", 1), []int{503, 201, 201}, ""},
		"pause before the call":    {kit.Pause(3*time.Second).BeforeWrite("POST registry", 1), []int{201, 201}, ""},
		"another kind is affected": {kit.LoseResponse().AfterWrite("DELETE registry", 1), []int{201, 201}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.Run(t, kit.Config{Faults: kit.Plan{c.op}}, 5, registers(false))
			var codes []int
			for _, e := range h.Events {
				if e.What == kit.Answered && e.Kind == "registry" {
					codes = append(codes, e.Code)
				}
			}
			if !slices.Equal(codes, c.codes) {
				t.Errorf("the calls are answered with %v, want %v", codes, c.codes)
			}
			if c.says == "" {
				sound(t, h)
			} else {
				finds(t, h, "V25", c.says)
			}
			careful := kit.Run(t, kit.Config{Faults: kit.Plan{c.op}}, 5, registers(true))
			sound(t, careful)
		})
	}
}

// Twenty seeds find the call that is repeated after a crash, from any start, and nothing in the
// program whose service recognizes repetitions.
func TestKit_SwarmRepeatsCallsOfAService_K15(t *testing.T) {
	for _, start := range []uint64{1, 1001, 2001} {
		found := func(h *kit.History) bool {
			return slices.ContainsFunc(h.Violations, func(v kit.Violation) bool { return v.Invariant == "V25" })
		}
		if h, _ := kit.Find(t, kit.Config{Faults: kit.Swarm().Without(kit.Rewind(1))}, start, 20, registers(false), found); h == nil {
			t.Errorf("seeds %d to %d do not find the repeated call", start, start+19)
		}
	}
	kit.Test(t, kit.Config{Seeds: 10, Faults: kit.Swarm().Without(kit.Rewind(1))}, registers(true))
}

// Calls trigger faults of a swarm.
func TestKit_SwarmTriggersFaultsByCalls_K15(t *testing.T) {
	triggered := 0
	for seed := range uint64(12) {
		for _, op := range kit.Run(t, kit.Config{}, seed, registers(true)).Plan {
			if strings.HasSuffix(op.When.Before+op.When.After, " registry") {
				triggered++
			}
		}
	}
	if triggered < 5 {
		t.Errorf("12 seeds have %d faults triggered by calls, want at least 5", triggered)
	}
}

// A request outside a process is an error, and misuse says what to do.
func TestKit_MisuseOfAServiceIsNamed_K6(t *testing.T) {
	for says, scenario := range map[string]func(*kit.World){
		"the handler is nil": func(w *kit.World) { w.Service("dns", nil, nil) },
		"cannot be named":    func(w *kit.World) { w.Service("Pod", http.NotFoundHandler(), nil) },
		"a service \"dns\" al": func(w *kit.World) {
			w.Service("dns", http.NotFoundHandler(), nil)
			w.Service("dns", http.NotFoundHandler(), nil)
		},
		"NewRequestWithContext": func(w *kit.World) {
			_, err := (&http.Client{Transport: w.Service("dns", http.NotFoundHandler(), nil)}).Get("http://dns.example")
			w.Fatalf("%v", err)
		},
	} {
		h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, scenario)
		if !slices.ContainsFunc(h.Violations, func(v kit.Violation) bool { return strings.Contains(v.Text, says) }) {
			t.Errorf("violations %v, want one that says %q", h.Violations, says)
		}
	}
}
