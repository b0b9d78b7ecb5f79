// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package aim_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

// process counts what happens to it.
type process struct{ killed, paused time.Duration }

func (p *process) Kill(down time.Duration) { p.killed += down }
func (p *process) Pause(d time.Duration)   { p.paused += d }

func create(t *testing.T, server *simulate.Server, name, client string) int {
	t.Helper()
	body := strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`)
	r := httptest.NewRequest(http.MethodPost, "/api/v1/namespaces/default/configmaps", body)
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = client
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return w.Code
}

// A fault happens at the write that it names, counted among those of the program or of the user.
func TestControl_HitsTheWriteThatIsNamed(t *testing.T) {
	p := &process{}
	var happened []string
	control := aim.New(nil, p, func(f aim.Fault) { happened = append(happened, f.String()) })
	defer control.Close()
	server := simulate.New(simulate.Options{Tracer: control})
	control.Begin(server)
	if err := control.Arm(
		aim.Fault{Fault: aim.Reject, Before: "create ConfigMap", Nth: 2},
		aim.Fault{Fault: aim.Crash, After: "create ConfigMap", Nth: 2, For: aim.Duration(time.Second)},
		aim.Fault{Fault: aim.Pause, Before: "create ConfigMap", User: true, For: aim.Duration(time.Minute)},
	); err != nil {
		t.Fatal(err)
	}
	var codes []int
	for _, one := range []struct{ name, client string }{{"a", "program"}, {"b", "program"}, {"u", "user"}, {"c", "program"}} {
		codes = append(codes, create(t, server, one.name, one.client))
	}
	if want := []int{201, 500, 201, 201}; !equal(codes, want) {
		t.Errorf("the answers are %v, want %v", codes, want)
	}
	// The refused write was not carried out, so the second that was is c.
	want := "reject before write 2 of create ConfigMap, pause for 1m0s before write 1 of create ConfigMap of the user, crash for 1s after write 2 of create ConfigMap"
	if got := strings.Join(happened, ", "); got != want || p.killed != time.Second || p.paused != time.Minute {
		t.Errorf("it happened: %s, killed for %s, paused for %s; want %s", got, p.killed, p.paused, want)
	}
}

// A fault with a time follows its write, and is awaited as one without a write is.
func TestControl_HappensLaterThanItsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var happened []string
		control := aim.New(nil, nil, func(f aim.Fault) { happened = append(happened, f.String()) })
		defer control.Close()
		server := simulate.New(simulate.Options{Tracer: control})
		control.Begin(server)
		if err := control.Arm(
			aim.Fault{Fault: aim.ForeignWrite, Kind: "ConfigMap", After: "create ConfigMap", At: aim.Duration(time.Second)},
			aim.Fault{Fault: aim.Cut, At: aim.Duration(3 * time.Second)},
		); err != nil {
			t.Fatal(err)
		}
		create(t, server, "a", "program")
		if synctest.Wait(); len(happened) > 0 || !control.Timed() {
			t.Errorf("at once it happened: %v; faults are to come: %t", happened, control.Timed())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(happened) != 1 || happened[0] != "foreign write ConfigMap after write 1 of create ConfigMap, 1s later" || !control.Timed() {
			t.Errorf("after two seconds it happened: %v; faults are to come: %t", happened, control.Timed())
		}
		is := server.Objects(schema.GroupResource{Resource: "configmaps"})
		if len(is) != 1 || is[0].GetAnnotations()[aim.Annotation] == "" {
			t.Errorf("the foreign write has left %v", is)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(happened) != 2 || control.Timed() {
			t.Errorf("after four seconds it happened: %v; faults are to come: %t", happened, control.Timed())
		}
	})
}

// knows returns how many ConfigMaps the watch cache has.
func knows(server *simulate.Server) int {
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default/configmaps?resourceVersion=0", nil))
	return strings.Count(w.Body.String(), `"name":`)
}

// Faults that overlap last until the last is over. DELETE ends them, and forgets those that wait for a time.
func TestControl_FaultsOverlapAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control := aim.New(nil, nil, nil)
		defer control.Close()
		server := simulate.New(simulate.Options{Tracer: control})
		control.Begin(server)
		create(t, server, "a", "program")
		is := func(when string, known, waiting, happened int) {
			t.Helper()
			synctest.Wait()
			if got, w, h := knows(server), len(control.Open()), len(control.Happened()); got != known || w != waiting || h != happened {
				t.Errorf("%s %d objects are known, %d faults wait, %d have happened; want %d, %d, %d", when, got, w, h, known, waiting, happened)
			}
		}
		arm := func(f aim.Fault, seconds, at int) {
			t.Helper()
			f.For, f.At = aim.Duration(seconds)*aim.Duration(time.Second), aim.Duration(at)*aim.Duration(time.Second)
			if err := control.Arm(f); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		remove := func() {
			(&aim.Port{Control: control}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodDelete, "/faults", nil))
		}
		lag := aim.Fault{Fault: aim.Lag}
		arm(lag, 4, 0)
		create(t, server, "b", "program")
		arm(lag, 9, 0)
		time.Sleep(5 * time.Second)
		is("after the first lag", 1, 0, 2)
		time.Sleep(5 * time.Second)
		is("after both", 2, 0, 2)

		arm(lag, 4, 0)
		arm(lag, 4, 1)
		is("before DELETE", 2, 1, 3)
		remove()
		arm(lag, 9, 0)
		create(t, server, "c", "program")
		time.Sleep(5 * time.Second)
		is("in a lag after DELETE", 2, 0, 4)

		arm(aim.Fault{Fault: aim.Cut, Before: "create ConfigMap"}, 0, 0)
		control.Close()
		arm(aim.Fault{Fault: aim.Cut, After: "create ConfigMap"}, 0, 0)
		arm(aim.Fault{Fault: aim.Cut}, 0, 1)
		create(t, server, "d", "program")
		is("after Close", 4, 0, 4)
	})
}

func equal(a, b []int) bool {
	for i := range a {
		if len(a) != len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestPort_TakesFaultsOfOtherPrograms(t *testing.T) {
	control := aim.New(nil, nil, nil)
	defer control.Close()
	server := simulate.New(simulate.Options{Tracer: control})
	control.Begin(server)
	port := &aim.Port{Control: control}
	ask := func(method, body string) (int, string) {
		w := httptest.NewRecorder()
		port.ServeHTTP(w, httptest.NewRequest(method, "/faults", strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	for body, want := range map[string]string{
		`{}`:                    "send a list",
		`[{"fault":"explode"}]`: "is not known; write one of lose response, reject,",
		`[{"fault":"crash","after":"create Pod"}]`:          "needs a process",
		`[{"fault":"slow","kind":"Pod","for":3}]`:           "is not a duration",
		`[{"fault":"reject","before":"*","code":404}]`:      "429, 500 or 503",
		`[{"fault":"lag","surprise":1}]`:                    "unknown field",
		`[{"fault":"lose response","kind":"Pod"}]`:          "needs a write",
		`[{"fault":"cut","before":"a","after":"create b"}]`: "give one",
		`[{"fault":"delay","before":"create Pod"}]`:         "has no duration",
		`[{"fault":"delay","for":"1s","at":"1s"}]`:          "needs a write",
		`[{"fault":"cut","before":"create a","user":true}]`: "leave out",
	} {
		if code, text := ask(http.MethodPost, body); code != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s is answered with %d %s, want 400 and %q", body, code, text, want)
		}
	}
	if code, text := ask(http.MethodPost, `[{"fault":"reject","before":"create ConfigMap","code":503}]`); code != http.StatusNoContent {
		t.Fatalf("a fault is answered with %d %s", code, text)
	}
	if got := create(t, server, "a", "program"); got != http.StatusServiceUnavailable {
		t.Errorf("the write is answered with %d, want 503", got)
	}
	if _, text := ask(http.MethodGet, ""); !strings.Contains(text, `"happened":[{"fault":"reject"`) {
		t.Errorf("the port shows %s", text)
	}
}
