// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/resource"
	"github.com/flyball-dev/flyball/resource/resourcetest"
)

// Server is the hub: it knows bounds, where the former version knows a number.
type Server struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ServerSpec   `json:"spec"`
	Status ServerStatus `json:"status,omitempty"`
}

type ServerSpec struct {
	Image string            `json:"image"`
	Min   int32             `json:"min"`
	Max   int32             `json:"max"`
	TLS   *TLS              `json:"tls,omitempty"`
	Ports []Port            `json:"ports,omitempty"`
	Extra map[string]string `json:"extra,omitempty"`
}

type TLS struct {
	Secret string   `json:"secret"`
	Hosts  []string `json:"hosts"` // null, if it is nil
}

type ServerStatus struct {
	Ready int32 `json:"ready"`
}

// OldServer has a note, which the hub has not.
type OldServer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   OldServerSpec `json:"spec"`
	Status ServerStatus  `json:"status,omitempty"`
}

type OldServerSpec struct {
	Picture  string  `json:"picture"`
	Replicas int32   `json:"replicas"`
	Ports    []int32 `json:"ports,omitempty"`
	Note     string  `json:"note,omitempty"`
}

var (
	oldVersion = schema.GroupVersion{Group: version.Group, Version: "v1beta1"}
	servers    = resource.Convert(oldVersion, version, toServer, fromServer)
)

func toServer(from *OldServer, to *Server) error {
	to.Spec = ServerSpec{Image: from.Spec.Picture, Min: from.Spec.Replicas, Max: from.Spec.Replicas}
	for _, number := range from.Spec.Ports {
		to.Spec.Ports = append(to.Spec.Ports, Port{Number: number})
	}
	to.Status = from.Status
	return nil
}

func fromServer(from *Server, to *OldServer) error {
	to.Spec = OldServerSpec{Picture: from.Spec.Image, Replicas: from.Spec.Min}
	for _, port := range from.Spec.Ports {
		to.Spec.Ports = append(to.Spec.Ports, port.Number)
	}
	to.Status = from.Status
	return nil
}

func TestConversion_NothingIsLostThereAndBack_O9(t *testing.T) {
	resourcetest.RoundTrip(t, servers, resourcetest.Options{Kept: []string{"spec.note"}})
}

func fullServer() *Server {
	return &Server{
		TypeMeta:   metav1.TypeMeta{APIVersion: version.String(), Kind: "Server"},
		ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"mine": "1"}, Finalizers: []string{"f"}},
		Spec: ServerSpec{Image: "nginx", Min: 2, Max: 5, TLS: &TLS{Secret: "s"}, Extra: map[string]string{"x/y": "z"},
			Ports: []Port{{Name: "http", Number: 80}, {Number: 443}}},
	}
}

// edited converts a server to the former version, edits that, and converts it back.
func edited(t *testing.T, from *Server, edit func(*OldServer)) *Server {
	t.Helper()
	var old OldServer
	if err := servers.FromHub(from, &old); err != nil {
		t.Fatal(err)
	}
	edit(&old)
	back := &Server{TypeMeta: from.TypeMeta}
	if err := servers.ToHub(&old, back); err != nil {
		t.Fatal(err)
	}
	return back
}

// What another client writes in the former version is as it wrote it, and the rest as it was.
func TestConversion_AnEditInTheOtherVersionCounts_O9(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*OldServer)
		want func(*Server)
	}{
		"nothing":           {func(*OldServer) {}, func(*Server) {}},
		"a common field":    {func(o *OldServer) { o.Spec.Picture = "httpd" }, func(s *Server) { s.Spec.Image = "httpd" }},
		"part of the hub's": {func(o *OldServer) { o.Spec.Replicas = 7 }, func(s *Server) { s.Spec.Min, s.Spec.Max = 7, 7 }},
		"an element": {func(o *OldServer) { o.Spec.Ports = []int32{443, 80} },
			func(s *Server) { s.Spec.Ports = []Port{{Number: 443}, {Number: 80}} }},
		"the status": {func(o *OldServer) { o.Status.Ready = 1 }, func(s *Server) { s.Status.Ready = 1 }},
		"labels":     {func(o *OldServer) { o.Labels = nil }, func(s *Server) { s.Labels = nil }},
	} {
		got, want := edited(t, fullServer(), c.edit), fullServer()
		c.want(want)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("after an edit of %s: got\n%+v\nwant\n%+v", name, got, want)
		}
	}
}

// A note outlives writes to the hub, which has no field for it.
func TestConversion_AFieldThatTheHubLacksIsKept_O9(t *testing.T) {
	old := &OldServer{Spec: OldServerSpec{Picture: "nginx", Replicas: 3, Note: "mine"}}
	var hub Server
	if err := servers.ToHub(old, &hub); err != nil {
		t.Fatal(err)
	}
	hub.Spec.Max = 9
	var again OldServer
	if err := servers.FromHub(&hub, &again); err != nil {
		t.Fatal(err)
	}
	if again.Spec.Note != "mine" || again.Annotations[resource.OnlyIn+"v1"] == "" || again.Annotations[resource.OnlyIn+"v1beta1"] != "" {
		t.Errorf("the former version is %+v with the annotations %v, want the note, and what only the hub has", again.Spec, again.Annotations)
	}
}

// Clients can write the annotation. An object with a bad one is readable.
func TestConversion_BadAnnotationsAreLeftOut_O9(t *testing.T) {
	for _, c := range []struct {
		text string
		want int32 // spec.max
	}{
		{"", 3},
		{"no JSON", 3},
		{`{"path":"/spec/max"}`, 3},
		{`[{"path":"/spec/max","was":3,"is":8}]`, 8},
		{`[{"path":"/spec/max","was":4,"is":8}]`, 3},
		{`[{"path":"/spec/max","was":3,"is":"eight"}]`, 3},
		{`[{"path":"/spec/max","was":3,"is":8},{"path":"/spec/tls","is":[]}]`, 8},
		{`[{"path":"","is":1},{"path":"/metadata","is":{"name":"other"}},{"path":"/kind","is":"Other"}]`, 3},
	} {
		old := &OldServer{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: OldServerSpec{Replicas: 3}}
		old.Annotations = map[string]string{resource.OnlyIn + "v1": c.text}
		var hub Server
		if err := servers.ToHub(old, &hub); err != nil || hub.Spec.Max != c.want || hub.Name != "one" || hub.Kind != "" || len(hub.Annotations) > 0 {
			t.Errorf("with the annotation %s: %v, %+v, want spec.max %d and no annotation", c.text, err, hub, c.want)
		}
	}
}

// The annotation of a third version passes.
func TestConversion_AThirdVersionKeepsItsAnnotation_O9(t *testing.T) {
	const third = resource.OnlyIn + "v1alpha1"
	from := fullServer()
	from.Annotations[third] = "[]"
	if got := edited(t, from, func(*OldServer) {}); got.Annotations[third] != "[]" || got.Annotations["mine"] != "1" {
		t.Errorf("the annotations are %v, want those that were there", got.Annotations)
	}
}

func TestConversion_SharesNoMetadataThatFunctionsChange_O9(t *testing.T) {
	labelling := resource.Convert(oldVersion, version, toServer, func(from *Server, to *OldServer) error {
		to.Labels["new"], to.Annotations["new"] = "1", "1"
		return fromServer(from, to)
	})
	from := fullServer()
	if err := labelling.FromHub(from, &OldServer{}); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(from, fullServer()) {
		t.Errorf("the object that was converted is %+v", from)
	}
}

func TestConversion_ErrorsAreReturned_O9(t *testing.T) {
	fails := func(*OldServer, *Server) error { return errors.New("no such picture") }
	other := schema.GroupVersion{Group: "other.example.com", Version: "v1"}
	for _, c := range []struct {
		conversion *resource.Conversion[*OldServer, *Server]
		want       string
	}{
		{resource.Convert(oldVersion, version, fails, fromServer), "no such picture"},
		{resource.Convert(oldVersion, version, nil, fromServer), "one for each direction"},
		{resource.Convert(oldVersion, version, toServer, nil), "one for each direction"},
		{resource.Convert(oldVersion, other, toServer, fromServer), "one group"},
		{resource.Convert(version, version, toServer, fromServer), "two versions"},
		{resource.Convert(schema.GroupVersion{Group: version.Group}, version, toServer, fromServer), "two versions"},
	} {
		if err := c.conversion.ToHub(&OldServer{}, &Server{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
	// An object can be read in a version in which it cannot be written.
	oneWay := resource.Convert(oldVersion, version, fails, fromServer)
	if err := oneWay.FromHub(fullServer(), &OldServer{}); err != nil {
		t.Error(err)
	}
}

func BenchmarkConversion(b *testing.B) {
	plain := &Server{Spec: ServerSpec{Image: "nginx", Min: 2, Max: 2, Ports: []Port{{Number: 80}}}}
	for name, from := range map[string]*Server{"expressible": plain, "kept": fullServer()} {
		var old OldServer
		if err := servers.FromHub(from, &old); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := servers.ToHub(&old, &Server{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
