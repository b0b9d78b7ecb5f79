// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

// Fleet is a Website of a program that knows less than its CustomResourceDefinition.
type Fleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FleetSpec   `json:"spec"`
	Status FleetStatus `json:"status,omitzero"`
}

type FleetSpec struct {
	Size    int      `json:"size"`
	Members []Member `json:"members,omitempty"`
	Points  []Point  `json:"points,omitempty"`
	Limits  Point    `json:"limits"`
	Spare   Point    `json:"spare,omitzero"`
	Best    *Point   `json:"best"`
}

type FleetStatus struct {
	Phase      string             `json:"phase,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type Member struct {
	Name   string `json:"name"`
	Weight int    `json:"weight"`
	Ports  []Port `json:"ports,omitempty"`
}

type Port struct {
	Port     int    `json:"port"`
	Protocol string `json:"protocol,omitempty"`
}

type Point struct {
	X int `json:"x"`
	Y int `json:"y"`
}

func (f *Fleet) DeepCopyObject() runtime.Object {
	data, err := json.Marshal(f)
	to := &Fleet{}
	if err = errors.Join(err, json.Unmarshal(data, to)); err != nil {
		panic(err)
	}
	return to
}

// oneObject is a server of one Website. It counts the requests by method.
type oneObject struct {
	is       []byte
	requests []string
}

func (o *oneObject) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/apis/example.com/v1" {
		return respond(r, reply{body: websiteDiscovery}), nil
	}
	name := r.Method + " " + strings.TrimPrefix(r.Header.Get("Content-Type"), "application/")
	o.requests = append(o.requests, strings.TrimSpace(name))
	if r.Method == http.MethodPatch {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		is, err := patched(o.is, body, r.Header.Get("Content-Type"))
		if err != nil {
			return respond(r, status(http.StatusUnprocessableEntity, "Invalid", err.Error(), "")), nil
		}
		o.is = is
	}
	if is := string(o.is); strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return respond(r, reply{body: strings.Replace(is, `"apiVersion":"example.com/v1","kind":"Website"`, `"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata"`, 1)}), nil
	}
	return respond(r, reply{body: string(o.is)}), nil
}

func patched(is, body []byte, contentType string) ([]byte, error) {
	if !strings.Contains(contentType, "json-patch") {
		return jsonpatch.MergePatch(is, body)
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	return patch.Apply(is)
}

func fleetServer(t *testing.T, members, points, more string) (*client.Client, *oneObject, *Fleet) {
	t.Helper()
	o := &oneObject{is: []byte(`{"apiVersion":"example.com/v1","kind":"Website","metadata":{"namespace":"prod","name":"web","uid":"u","resourceVersion":"7"},` +
		`"spec":{"newer":1,"members":` + members + `,"points":` + points + `}` + more + `}`)}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(websiteKind, &Fleet{})
	c, err := client.New(&rest.Config{Host: "http://api.test", Transport: o}, scheme, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fleet := &Fleet{}
	if err := json.Unmarshal(o.is, fleet); err != nil {
		t.Fatal(err)
	}
	return c, o, fleet
}

func TestPatchChanges_ElementsKeepWhatTheGoTypeDoesNotKnow_C17(t *testing.T) {
	const (
		a, b, c = `{"name":"a","weight":1,"zone":"A"}`, `{"name":"b","weight":2,"zone":"B"}`, `{"name":"c","weight":3,"zone":"C","ports":[{"port":1,"app":"x"},{"port":2,"app":"y"}]}`
		abc     = `[` + a + `,` + b + `,` + c + `]`
		p, q    = `{"x":1,"y":10,"z":100}`, `{"x":2,"y":20,"z":200}`
		pq      = `[` + p + `,` + q + `]`
	)
	for _, row := range []struct {
		name    string
		points  string // empty: pq
		change  func(*FleetSpec)
		members string // wanted
		want    string // points; empty: an UnknownFieldsError
		read    bool   // the object is read
	}{
		{"an element", "", func(s *FleetSpec) { s.Members[1].Weight = 5 }, `[` + a + `,{"name":"b","weight":5,"zone":"B"},` + c + `]`, pq, false},
		{"an element of an element", "", func(s *FleetSpec) { s.Members[2].Ports[1].Protocol = "UDP" },
			`[` + a + `,` + b + `,{"name":"c","weight":3,"zone":"C","ports":[{"port":1,"app":"x"},{"port":2,"app":"y","protocol":"UDP"}]}]`, pq, false},
		{"one removed and one changed", "", func(s *FleetSpec) { s.Members = s.Members[1:]; s.Members[0].Weight = 5 }, `[{"name":"b","weight":5,"zone":"B"},` + c + `]`, pq, false},
		{"one added in front", "", func(s *FleetSpec) { s.Members = slices.Insert(s.Members, 0, Member{Name: "n"}) }, `[{"name":"n","weight":0},` + a + `,` + b + `,` + c + `]`, pq, false},
		{"reversed, and one changed", "", func(s *FleetSpec) { slices.Reverse(s.Members); s.Members[0].Weight = 5 },
			`[` + strings.Replace(c, "3", "5", 1) + `,` + b + `,` + a + `]`, pq, false},
		{"one replaced", "", func(s *FleetSpec) { s.Members[0].Name = "n" }, `[{"name":"n","weight":1},` + b + `,` + c + `]`, pq, false},
		{"all removed", "", func(s *FleetSpec) { s.Members = nil }, "", pq, false},
		{"with another field", "", func(s *FleetSpec) { s.Size, s.Members[1].Weight = 9, 5 }, `[` + a + `,{"name":"b","weight":5,"zone":"B"},` + c + `]`, pq, false},
		{"with a field of what the server may not have", "", func(s *FleetSpec) { s.Limits.X, s.Members[1].Weight = 9, 5 }, `[` + a + `,{"name":"b","weight":5,"zone":"B"},` + c + `]`, pq, true},
		{"a nameless one in its place", "", func(s *FleetSpec) { s.Points[1].Y = 21 }, abc, `[` + p + `,{"x":2,"y":21,"z":200}]`, false},
		{"a nameless one less", "", func(s *FleetSpec) { s.Points = s.Points[1:] }, abc, `[` + q + `]`, false},
		{"nameless ones in another order", "", func(s *FleetSpec) { slices.Reverse(s.Points) }, abc, `[` + q + `,` + p + `]`, false},
		{"nameless: one removed, one changed", "", func(s *FleetSpec) { s.Points = []Point{{2, 21}} }, "", "", true},
		{"nameless: one changed, one appended", "", func(s *FleetSpec) { s.Points[0].Y = 11; s.Points = append(s.Points, Point{3, 3}) }, "", "", true},
		{"nameless: sorted, and changed", `[{"x":0,"y":2,"z":1},{"x":0,"y":1,"z":2}]`, func(s *FleetSpec) { s.Points = []Point{{5, 1}, {5, 2}} }, "", "", true},
		{"nameless: moved, and changed, beside what all have", `[{"x":7,"y":2,"z":1},{"x":7,"y":1,"z":2},{"x":1,"y":5,"z":3}]`,
			func(s *FleetSpec) { s.Points = []Point{{7, 1}, {7, 3}, {1, 5}} }, "", "", true},
		{"nameless: replaced", "", func(s *FleetSpec) { s.Points[0] = Point{8, 9} }, "", "", true},
		{"nameless: one of two equal ones less", `[{"x":1,"y":1,"z":1},{"x":1,"y":1,"z":2}]`, func(s *FleetSpec) { s.Points = s.Points[1:] }, "", "", true},
		{"nameless, and all is known", `[{"x":1,"y":10},{"x":2,"y":20}]`, func(s *FleetSpec) { s.Points = []Point{{2, 21}} }, abc, `[{"x":2,"y":21}]`, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.points == "" {
				row.points = pq
			}
			cl, server, from := fleetServer(t, abc, row.points, "")
			was := string(server.is)
			to := kube.Copy(from)
			row.change(&to.Spec)
			changed, err := cl.PatchChanges(t.Context(), from, to)
			if read := slices.Contains(server.requests, "GET"); read != row.read {
				t.Errorf("the requests are %q; want a read: %t", server.requests, row.read)
			}
			if row.want == "" {
				if unknown := (*client.UnknownFieldsError)(nil); !errors.As(err, &unknown) || unknown.List != "spec.points" || string(server.is) != was {
					t.Fatalf("got %v, want an *UnknownFieldsError of spec.points, and nothing sent; the server has %s", err, server.is)
				}
				return
			}
			if err != nil || !changed {
				t.Fatalf("got %v, %v", changed, err)
			}
			spec := specOf(t, server.is)
			if spec["newer"] != float64(1) || !same(t, spec["members"], row.members) || !same(t, spec["points"], row.want) {
				t.Errorf("the server has %v, want members %s and points %s", spec, row.members, row.want)
			}
		})
	}
}

// What changes beside an element says the same as a merge patch would.
func TestPatchChanges_FieldsBesideElements_C17(t *testing.T) {
	for _, row := range []struct {
		name, more string // fields of the spec
		change     func(*Fleet)
		want       string
		read       bool
	}{
		{"a pointer becomes nil", `,"best":{"x":1,"y":1,"z":1}`, func(f *Fleet) { f.Spec.Best = nil }, ``, false},
		{"a struct that is omitted gets a field", `,"spare":{"z":1}`, func(f *Fleet) { f.Spec.Spare.X = 5 }, `"spare":{"x":5,"y":0,"z":1},`, true},
		{"the first label", ``, func(f *Fleet) { f.Labels = map[string]string{"a": "b"} }, ``, false},
	} {
		cl, server, from := fleetServer(t, `[{"name":"a","weight":1,"zone":"A"}]`, `[]`+row.more, "")
		to := kube.Copy(from)
		row.change(to)
		to.Spec.Members[0].Weight = 5
		if _, err := cl.PatchChanges(t.Context(), from, to); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if read := slices.Contains(server.requests, "GET"); read != row.read {
			t.Errorf("%s: the requests are %q; want a read: %t", row.name, server.requests, row.read)
		}
		if want := `{"newer":1,` + row.want + `"points":[],"members":[{"name":"a","weight":5,"zone":"A"}]}`; !same(t, any(specOf(t, server.is)), want) {
			t.Errorf("%s: the server has %s, want the spec %s", row.name, server.is, want)
		}
	}
}

// The server applies operations before it compares the versions: an element that is no longer
// there makes them invalid, which is a conflict.
func TestPatchChanges_ElementIsNoLongerThere_C17(t *testing.T) {
	cl, server, from := fleetServer(t, `[{"name":"a","weight":1},{"name":"b","weight":1}]`, `[]`, "")
	to := kube.Copy(from)
	to.Spec.Members[1].Weight = 5
	patches := map[string]func() error{
		"PatchChanges": func() error { _, err := cl.PatchChanges(t.Context(), from, kube.Copy(to)); return err },
		"MergeFrom":    func() error { return cl.Patch(t.Context(), kube.Copy(to), client.MergeFrom(from)) },
	}
	gone := `{"apiVersion":"example.com/v1","kind":"Website","metadata":{"namespace":"prod","name":"web","uid":"u","resourceVersion":"`
	for name, patch := range patches {
		server.is = []byte(gone + `8"},"spec":{"members":[]}}`)
		if err := patch(); !errors.As(err, new(*client.ConflictError)) {
			t.Errorf("%s: got %v, want a *ConflictError", name, err)
		}
		server.is = []byte(gone + `7"},"spec":{}}`)
		if err := patch(); err == nil || errors.As(err, new(*client.ConflictError)) {
			t.Errorf("%s of the same version: got %v, want the server's error", name, err)
		}
	}
}

// The elements of another version may be others.
func TestPatchChanges_ElementsOfAnotherVersion_C17(t *testing.T) {
	cl, server, from := fleetServer(t, `[{"name":"a","weight":1,"zone":"A"}]`, `[]`, "")
	to := kube.Copy(from)
	to.Spec.Members[0].Weight = 5
	other := client.Preconditions{ResourceVersion: "8"}
	_, err := cl.PatchChanges(t.Context(), from, kube.Copy(to), other)
	err2 := cl.Patch(t.Context(), kube.Copy(to), client.MergeFrom(from), other)
	if err == nil || err2 == nil || len(server.requests) > 0 {
		t.Errorf("got %v and %v after %q, want errors and no request", err, err2, server.requests)
	}
}

func specOf(t *testing.T, object []byte) map[string]any {
	t.Helper()
	var is struct{ Spec map[string]any }
	if err := json.Unmarshal(object, &is); err != nil {
		t.Fatal(err)
	}
	return is.Spec
}

func same(t *testing.T, got any, want string) bool {
	t.Helper()
	var wanted any
	if want != "" {
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
	}
	return reflect.DeepEqual(got, wanted)
}

// A change of a condition, the most frequent of all, takes one request.
func TestPatchChanges_ConditionTakesOneRequest_C17(t *testing.T) {
	cl, server, from := fleetServer(t, `[]`, `[]`, `,"status":{"phase":"Old","conditions":[{"type":"Ready","status":"False","reason":"r","message":"","lastTransitionTime":null,"newer":1}]}`)
	to := kube.Copy(from)
	to.Status.Phase, to.Status.Conditions[0].Status = "New", metav1.ConditionTrue
	if changed, err := cl.PatchChanges(t.Context(), from, to); err != nil || !changed {
		t.Fatalf("got %v, %v", changed, err)
	}
	if len(server.requests) != 1 || !strings.Contains(string(server.is), `"newer":1`) || !strings.Contains(string(server.is), `"status":"True"`) {
		t.Errorf("%q left %s, want one request, and the unknown field kept", server.requests, server.is)
	}
}

func TestMergeFrom_ElementsKeepWhatTheGoTypeDoesNotKnow_C17(t *testing.T) {
	const members = `[{"name":"a","weight":1,"zone":"A"}]`
	cl, server, from := fleetServer(t, members, `[{"x":1,"y":1,"z":1}]`, "")
	to := kube.Copy(from)
	to.Spec.Members[0].Weight = 5
	if err := cl.Patch(t.Context(), to, client.MergeFrom(from)); err != nil {
		t.Fatal(err)
	}
	if spec := specOf(t, server.is); !same(t, spec["members"], `[{"name":"a","weight":5,"zone":"A"}]`) {
		t.Errorf("the server has %v, want the zone kept", spec)
	}
	sent := len(server.requests)
	for name, change := range map[string]func(from, to *Fleet){
		"uncertain":       func(_, to *Fleet) { to.Spec.Points = []Point{{2, 2}} },
		"without version": func(from, to *Fleet) { from.ResourceVersion, to.Spec.Members[0].Weight = "", 6 },
	} {
		from, to := kube.Copy(to), kube.Copy(to)
		change(from, to)
		err := cl.Patch(t.Context(), to, client.MergeFrom(from))
		if !errors.As(err, new(*client.UnknownFieldsError)) || len(server.requests) != sent {
			t.Errorf("%s: got %v after %q, want an *UnknownFieldsError and no request", name, err, server.requests)
		}
	}
}

func TestCreateOrUpdate_ElementsKeepWhatTheGoTypeDoesNotKnow_C17(t *testing.T) {
	cl, server, fleet := fleetServer(t, `[{"name":"a","weight":1,"zone":"A"}]`, `[]`, "")
	outcome, err := cl.CreateOrUpdate(t.Context(), fleet, func() error { fleet.Spec.Members[0].Weight = 5; return nil })
	if err != nil || outcome != client.Updated {
		t.Fatalf("got %s, %v", outcome, err)
	}
	if spec := specOf(t, server.is); !same(t, spec["members"], `[{"name":"a","weight":5,"zone":"A"}]`) {
		t.Errorf("the server has %v, want the zone kept", spec)
	}
}

// Whatever is changed, a patch of a Go type that knows all fields leaves the object as it was
// changed, and elements whose origin is certain keep the field that a smaller type lacks.
func FuzzPatchChanges_C17(f *testing.F) {
	f.Add([]byte("abcabd"))
	f.Add([]byte{0, 1, 2, 3, 2, 1, 0, 9, 9})
	f.Fuzz(func(t *testing.T, plan []byte) {
		if len(plan) > 24 {
			return
		}
		half := len(plan) / 2
		var raw []string
		seen := map[string]string{}
		for i, p := range plan[:half] {
			name := fmt.Sprint("n", p%8)
			if seen[name] == "" {
				seen[name] = fmt.Sprint("zone", i)
				raw = append(raw, fmt.Sprintf(`{"name":%q,"weight":%d,"zone":%q}`, name, p%3, seen[name]))
			}
		}
		cl, server, from := fleetServer(t, `[`+strings.Join(raw, ",")+`]`, `[]`, "")
		to := kube.Copy(from)
		to.Spec.Members = nil
		wanted := []any{}
		for _, p := range plan[half:] {
			name := fmt.Sprint("n", p%8)
			if slices.ContainsFunc(to.Spec.Members, func(m Member) bool { return m.Name == name }) {
				continue
			}
			to.Spec.Members = append(to.Spec.Members, Member{Name: name, Weight: int(p) / 3})
			m := map[string]any{"name": name, "weight": float64(int(p) / 3)}
			if zone := seen[name]; zone != "" {
				m["zone"] = zone
			}
			wanted = append(wanted, m)
		}
		if _, err := cl.PatchChanges(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
		got, _ := specOf(t, server.is)["members"].([]any)
		if len(got)+len(wanted) > 0 && !reflect.DeepEqual(got, wanted) {
			t.Errorf("%v became %v, want %v", raw, got, wanted)
		}
	})
}
