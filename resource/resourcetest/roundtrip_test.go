// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package resourcetest_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/flyball-dev/flyball/resource"
	"github.com/flyball-dev/flyball/resource/resourcetest"
)

type Lamp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec LampSpec `json:"spec"`
}

type LampSpec struct {
	Color    Color                 `json:"color"`
	Watts    int64                 `json:"watts"`
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	Socket   *Socket               `json:"socket,omitempty"`
	Port     intstr.IntOrString    `json:"port"`
	Raw      runtime.RawExtension  `json:"raw,omitempty"`
	Since    metav1.MicroTime      `json:"since,omitempty"`
}

type Color string

type Socket struct {
	Name string `json:"name"`
}

// OldLamp has the same spec under another name.
type OldLamp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Old LampSpec `json:"old"`
}

var now, then = schema.GroupVersion{Group: "example.dev", Version: "v1"}, schema.GroupVersion{Group: "example.dev", Version: "v1beta1"}

func toNew(from *OldLamp, to *Lamp) error { to.Spec = from.Old; return nil }
func toOld(from *Lamp, to *OldLamp) error { to.Old = from.Spec; return nil }

// recorder is a test that fails without stopping.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func trip(t *testing.T, toHub func(*OldLamp, *Lamp) error, fromHub func(*Lamp, *OldLamp) error, opts resourcetest.Options) []string {
	t.Helper()
	r := &recorder{TB: t}
	if opts.Objects == 0 {
		opts.Objects = 50
	}
	resourcetest.RoundTrip(r, resource.Convert(then, now, toHub, fromHub), opts)
	return r.failures
}

func TestRoundTrip_ARightConversionPasses_O10(t *testing.T) {
	if got := trip(t, toNew, toOld, resourcetest.Options{}); len(got) > 0 {
		t.Errorf("failures: %s", strings.Join(got, "\n"))
	}
}

func TestRoundTrip_NamesWhatIsWrong_O10(t *testing.T) {
	calls := int64(0)
	for name, c := range map[string]struct {
		toHub   func(*OldLamp, *Lamp) error
		fromHub func(*Lamp, *OldLamp) error
		want    []string // one for each failure
	}{
		"a forgotten field": {
			func(from *OldLamp, to *Lamp) error { to.Spec = from.Old; to.Spec.Color = ""; return nil },
			func(from *Lamp, to *OldLamp) error { to.Old = from.Spec; to.Old.Color = ""; return nil },
			[]string{"v1beta1 to v1 and back: old.color is lost: it was "},
		},
		"a forgotten field in a pointer": {
			toNew,
			func(from *Lamp, to *OldLamp) error {
				to.Old = from.Spec
				if to.Old.Socket != nil {
					to.Old.Socket = &Socket{}
				}
				return nil
			},
			[]string{"old.socket.name is lost"},
		},
		"another result each time": {
			func(from *OldLamp, to *Lamp) error {
				calls++
				to.Spec = from.Old
				to.Spec.Watts = calls
				return nil
			},
			toOld,
			[]string{"old.watts is lost", "v1beta1 to v1 and back: metadata.annotations was ", "v1 to v1beta1 and back: metadata.annotations was "},
		},
		"a changed argument": {
			func(from *OldLamp, to *Lamp) error { from.Old.Color = "red"; to.Spec = from.Old; return nil },
			toOld,
			[]string{"v1beta1 to v1 changes the object", "v1beta1 to v1 changes the object", "v1 to v1beta1 and back: metadata.annotations was "},
		},
		"a refused value": {
			toNew,
			func(*Lamp, *OldLamp) error { return errors.New("no such color") },
			[]string{"v1 to v1beta1: no such color; if this value is never stored, fill its type by Options.Fill", "v1 to v1beta1: no such color"},
		},
		"nil": {nil, toOld, []string{"one for each direction", "one for each direction", "one for each direction"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := trip(t, c.toHub, c.fromHub, resourcetest.Options{Objects: 20})
			if len(got) != len(c.want) {
				t.Fatalf("%d failures, want %d:\n%s", len(got), len(c.want), strings.Join(got, "\n"))
			}
			for i, want := range c.want {
				if !strings.Contains(got[i], want) || !strings.Contains(got[i], "Options{Seed: ") {
					t.Errorf("got %s\nwant %q and the seed", got[i], want)
				}
			}
		})
	}
}

// The seed of a failure repeats it alone, and a run is the same each time.
func TestRoundTrip_TheSeedRepeatsAFailure_O10(t *testing.T) {
	forgets := func(from *OldLamp, to *Lamp) error {
		to.Spec = from.Old
		if from.Old.Socket != nil {
			to.Spec.Color = ""
		}
		return nil
	}
	first := trip(t, forgets, toOld, resourcetest.Options{})
	if again := trip(t, forgets, toOld, resourcetest.Options{}); len(first) != 1 || len(again) != 1 || first[0] != again[0] {
		t.Fatalf("two runs report\n%s\nand\n%s\nwant the same failure", first, again)
	}
	var seed int64
	found := regexp.MustCompile(`Seed: (\d+)`).FindStringSubmatch(first[0])
	if _, err := fmt.Sscan(found[1], &seed); err != nil {
		t.Fatal(err)
	}
	if alone := trip(t, forgets, toOld, resourcetest.Options{Seed: seed, Objects: 1}); len(alone) != 1 || alone[0] != first[0] {
		t.Errorf("seed %d alone reports\n%s\nwant\n%s", seed, alone, first[0])
	}
}

func TestRoundTrip_NamedFieldsMayBeKept_O10(t *testing.T) {
	toHub := func(from *OldLamp, to *Lamp) error { to.Spec = from.Old; to.Spec.Socket = nil; return nil }
	if got := trip(t, toHub, toOld, resourcetest.Options{Kept: []string{"old.socket"}}); len(got) > 0 {
		t.Errorf("with the named field: %s", strings.Join(got, "\n"))
	}
	if got := trip(t, toHub, toOld, resourcetest.Options{Kept: []string{"old.sock"}}); len(got) != 1 {
		t.Errorf("with another field: %d failures, want one", len(got))
	}
}

// A conversion that knows some values gets those.
func TestRoundTrip_FillMakesTheValues_O10(t *testing.T) {
	known := func(from *OldLamp, to *Lamp) error {
		if from.Old.Color != "red" && from.Old.Color != "green" {
			return fmt.Errorf("no color %q", from.Old.Color)
		}
		to.Spec = from.Old
		return nil
	}
	fill := func(c *Color, random randfill.Continue) { *c = []Color{"red", "green"}[random.Intn(2)] }
	if got := trip(t, known, toOld, resourcetest.Options{Fill: []any{fill}}); len(got) > 0 {
		t.Errorf("failures: %s", strings.Join(got, "\n"))
	}
}
