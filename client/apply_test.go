// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

// Sample has one field for each way in which a value can be empty or not.
type Sample struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SampleSpec `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

type SampleSpec struct {
	Inlined         `json:",inline"`
	*InlinedPointer `json:",inline"`
	hidden          string
	Text            string  `json:"text,omitempty"`
	Number          int32   `json:"number,omitempty"`
	Ratio           float32 `json:"ratio,omitempty"`
	Yes             bool    `json:"yes,omitempty"`
	Named           string  `json:",omitempty"`
	Skipped         string  `json:"-"`
	//lint:ignore SA5008 encoding/json reads it so
	Dash             string                       `json:"-,omitempty"`
	Quoted           int64                        `json:"quoted,string,omitempty"`
	TextPointer      *string                      `json:"textPointer,omitempty"`
	NumberPointer    *int32                       `json:"numberPointer,omitempty"`
	QuotedPointer    *int64                       `json:"quotedPointer,string,omitempty"`
	Struct           Inner                        `json:"struct,omitempty"`
	StructPointer    *Inner                       `json:"structPointer,omitempty"`
	MapOfText        map[string]string            `json:"mapOfText,omitempty"`
	MapOfStruct      map[string]Inner             `json:"mapOfStruct,omitempty"`
	MapOfList        map[string][]string          `json:"mapOfList,omitempty"`
	MapByNumber      map[int32]bool               `json:"mapByNumber,omitempty"`
	MapOfQuantity    map[string]resource.Quantity `json:"mapOfQuantity,omitempty"`
	MapPointer       *map[string]string           `json:"mapPointer,omitempty"`
	List             []string                     `json:"list,omitempty"`
	ListOfStruct     []Inner                      `json:"listOfStruct,omitempty"`
	ListOfPointer    []*Inner                     `json:"listOfPointer,omitempty"`
	ListPointer      *[]string                    `json:"listPointer,omitempty"`
	Array            [2]int                       `json:"array,omitempty"`
	Bytes            []byte                       `json:"bytes,omitempty"`
	Quantity         resource.Quantity            `json:"quantity,omitempty"`
	QuantityPointer  *resource.Quantity           `json:"quantityPointer,omitempty"`
	Port             intstr.IntOrString           `json:"port,omitempty"`
	PortPointer      *intstr.IntOrString          `json:"portPointer,omitempty"`
	Time             metav1.Time                  `json:"time,omitempty"`
	TimePointer      *metav1.Time                 `json:"timePointer,omitempty"`
	Duration         metav1.Duration              `json:"duration,omitempty"`
	Raw              runtime.RawExtension         `json:"raw,omitempty"`
	Any              any                          `json:"any,omitempty"`
	MarshalsByRef    byRef                        `json:"marshalsByRef,omitempty"`
	MapMarshalsByRef map[string]byRef             `json:"mapMarshalsByRef,omitempty"`
}

type Inlined struct {
	FromInlined string `json:"fromInlined,omitempty"`
	Text        string `json:"text,omitempty"` // the outer one wins
}

type InlinedPointer struct {
	FromPointer int `json:"fromPointer,omitempty"`
}

type Inner struct {
	A string            `json:"a,omitempty"`
	B *bool             `json:"b,omitempty"`
	C map[string]string `json:"c,omitempty"`
}

// byRef marshals itself by a method of its pointer.
type byRef struct{ text string }

func (b *byRef) MarshalJSON() ([]byte, error) { return json.Marshal("by " + b.text) }

func (s *Sample) DeepCopyObject() runtime.Object { c := *s; return &c }

var sampleKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Website"}

// applied returns the body that a client sends when obj is applied.
func applied(t testing.TB, obj kube.Object) (body string, err error) {
	t.Helper()
	return appliedAny(t, obj)
}

func appliedAny(t testing.TB, obj any) (body string, err error) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	if _, plain := obj.(*Plain); plain {
		scheme.AddKnownTypeWithName(sampleKind, &Plain{})
	} else {
		scheme.AddKnownTypeWithName(sampleKind, &Sample{})
	}
	s := &script{answers: []reply{{body: `{}`}}}
	c, err := client.New(&rest.Config{Host: "http://api.test", Transport: s}, scheme, client.Options{FieldOwner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if object, ok := obj.(kube.Object); ok {
		object = object.DeepCopyObject().(kube.Object) // Apply modifies it
		object.SetNamespace("prod")
		object.SetName("web")
		obj = object
	}
	if err := c.Apply(t.Context(), obj); err != nil {
		return "", err
	}
	return s.requests()[0].body, nil
}

func TestApply_EmptyValuesAreNotClaimed_C4(t *testing.T) {
	zero, no, text := int32(0), false, ""
	zero64 := int64(0)
	for _, row := range []struct {
		name string
		spec SampleSpec
		want string
	}{
		{"nothing", SampleSpec{}, ``},
		{"unexported", SampleSpec{hidden: "x", Skipped: "x"}, ``},
		{"scalars", SampleSpec{Text: "x", Number: -1, Ratio: 0.1, Yes: true}, `{"number":-1,"ratio":0.1,"text":"x","yes":true}`},
		{"names", SampleSpec{Named: "x", Dash: "y", Quoted: 7}, `{"-":"y","Named":"x","quoted":"7"}`},
		{"zeros behind pointers", SampleSpec{TextPointer: &text, NumberPointer: &zero, QuotedPointer: &zero64},
			`{"numberPointer":0,"quotedPointer":"0","textPointer":""}`},
		{"inlined", SampleSpec{Inlined: Inlined{FromInlined: "x", Text: "shadowed"}}, `{"fromInlined":"x"}`},
		{"inlined pointer", SampleSpec{InlinedPointer: &InlinedPointer{FromPointer: 1}}, `{"fromPointer":1}`},
		{"inlined pointer to nothing", SampleSpec{InlinedPointer: &InlinedPointer{}}, ``},
		{"struct of empties", SampleSpec{Struct: Inner{C: map[string]string{}}}, ``},
		{"struct", SampleSpec{Struct: Inner{A: "x"}}, `{"struct":{"a":"x"}}`},
		{"struct of a pointer to zero", SampleSpec{Struct: Inner{B: &no}}, `{"struct":{"b":false}}`},
		{"pointer to an empty struct", SampleSpec{StructPointer: &Inner{}}, `{"structPointer":{}}`},
		{"empty maps and lists", SampleSpec{MapOfText: map[string]string{}, List: []string{}, Bytes: []byte{}, ListOfStruct: []Inner{}}, ``},
		{"entry with an empty value", SampleSpec{MapOfText: map[string]string{"k": ""}}, `{"mapOfText":{"k":""}}`},
		{"entry with an empty struct", SampleSpec{MapOfStruct: map[string]Inner{"k": {}}}, `{"mapOfStruct":{"k":{}}}`},
		{"entry without list", SampleSpec{MapOfList: map[string][]string{"k": nil}}, `{"mapOfList":{"k":[]}}`},
		{"entry by number", SampleSpec{MapByNumber: map[int32]bool{-3: false}}, `{"mapByNumber":{"-3":false}}`},
		{"entry with a zero quantity", SampleSpec{MapOfQuantity: map[string]resource.Quantity{"cpu": {}}}, `{"mapOfQuantity":{"cpu":"0"}}`},
		{"pointers to empties", SampleSpec{MapPointer: &map[string]string{}, ListPointer: new([]string)}, `{"listPointer":[],"mapPointer":{}}`},
		{"elements", SampleSpec{List: []string{"", "x"}, ListOfStruct: []Inner{{}, {A: "x"}}, ListOfPointer: []*Inner{nil, {}}},
			`{"list":["","x"],"listOfPointer":[null,{}],"listOfStruct":[{},{"a":"x"}]}`},
		{"array", SampleSpec{Array: [2]int{0, 1}}, `{"array":[0,1]}`},
		{"bytes", SampleSpec{Bytes: []byte("hi")}, `{"bytes":"aGk="}`},
		{"quantity", SampleSpec{Quantity: resource.MustParse("100m"), QuantityPointer: &resource.Quantity{}}, `{"quantity":"100m","quantityPointer":"0"}`},
		{"explicit zero quantity", SampleSpec{Quantity: resource.MustParse("0")}, ``},
		{"ports", SampleSpec{Port: intstr.FromString("http"), PortPointer: &intstr.IntOrString{}}, `{"port":"http","portPointer":0}`},
		{"time", SampleSpec{Time: metav1.Unix(0, 0), Duration: metav1.Duration{Duration: time.Second}},
			`{"duration":"1s","time":"1970-01-01T00:00:00Z"}`},
		{"pointer to zero time", SampleSpec{TimePointer: &metav1.Time{}}, ``},
		{"raw", SampleSpec{Raw: runtime.RawExtension{Raw: []byte(`{"a":0}`)}}, `{"raw":{"a":0}}`},
		{"any zero", SampleSpec{Any: 0}, `{"any":0}`},
		{"any map", SampleSpec{Any: map[string]any{"a": nil, "b": ""}}, `{"any":{"a":null,"b":""}}`},
		{"marshals by its pointer", SampleSpec{MarshalsByRef: byRef{"x"}, MapMarshalsByRef: map[string]byRef{"k": {}}},
			`{"mapMarshalsByRef":{"k":"by "},"marshalsByRef":"by x"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			obj := &Sample{Spec: row.spec}
			obj.Status.Phase = "not claimed"
			got, err := applied(t, obj)
			if err != nil {
				t.Fatal(err)
			}
			want := `{"apiVersion":"example.com/v1","kind":"Website","metadata":{"name":"web","namespace":"prod"}}`
			if row.want != "" {
				want = strings.TrimSuffix(want, "}") + `,"spec":` + row.want + "}"
			}
			if got != want {
				t.Errorf("sent %s\nwant %s\nwhat is sent becomes the field owner's", got, want)
			}
		})
	}
}

// Plain has fields without omitempty, whose zeros are meant.
type Plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PlainSpec `json:"spec"`
}

type PlainSpec struct {
	Enabled  bool    `json:"enabled"`
	Weight   int32   `json:"weight"`
	Ratio    float64 `json:"ratio"`
	Text     string  `json:"text"`
	Untagged string
	//lint:ignore SA5008 encoding/json reads it so
	Dash    string               `json:"-,"`
	Quoted  int64                `json:"quoted,string"`
	Number  json.Number          `json:"number"`
	Array   [2]int               `json:"array"`
	Members []string             `json:"members"`
	Bytes   []byte               `json:"bytes"`
	Map     map[string]string    `json:"map"`
	Pointer *int32               `json:"pointer"`
	Any     any                  `json:"any"`
	Time    metav1.Time          `json:"time"`
	Raw     runtime.RawExtension `json:"raw"`
	Size    resource.Quantity    `json:"size"`
	Port    intstr.IntOrString   `json:"port"`
	Nested  PlainNested          `json:"nested"`
	Empty   struct {
		Maybe string   `json:"maybe,omitempty"`
		None  *int     `json:"none"`
		Nones []string `json:"nones"`
	} `json:"empty"`
	Optional PlainNested `json:"optional,omitempty"`
	Zero     PlainNested `json:"zero,omitzero"`
}

type PlainNested struct {
	On bool `json:"on"`
}

func (p *Plain) DeepCopyObject() runtime.Object { c := *p; return &c }

func TestApply_ZerosOfFieldsWithoutOmitemptyAreClaimed_C4(t *testing.T) {
	const zeros = `"-":"","Untagged":"","any":null,"array":[0,0],"bytes":null,"empty":{"none":null,"nones":null},"enabled":false,"map":null,` +
		`"members":null,"nested":{"on":false},"number":0,"optional":{"on":false},"pointer":null,"port":0,"quoted":"0","ratio":0,"raw":null,` +
		`"size":"0","text":"","time":null,"weight":0`
	// What encoding/json prints, without null, empty structs, and what has omitempty.
	const claimed = `"-":"","Untagged":"","array":[0,0],"enabled":false,"nested":{"on":false},"number":0,"port":0,"quoted":"0","ratio":0,"size":"0","text":"","weight":0`
	if printed, err := json.Marshal(PlainSpec{}); err != nil || !sameJSON(t, string(printed), "{"+zeros+"}") {
		t.Fatalf("encoding/json prints %s, %v, want %s", printed, err, zeros)
	}
	for _, row := range []struct {
		name string
		spec PlainSpec
		want string
	}{
		{"zeros", PlainSpec{}, "{" + claimed + "}"},
		{"empty lists and maps that are there", PlainSpec{Members: []string{}, Bytes: []byte{}, Map: map[string]string{}},
			"{" + claimed + `,"members":[],"bytes":"","map":{}}`},
		{"an optional struct that says something", PlainSpec{Optional: PlainNested{On: true}}, "{" + claimed + `,"optional":{"on":true}}`},
	} {
		got, err := applied(t, &Plain{Spec: row.spec})
		want := `{"apiVersion":"example.com/v1","kind":"Website","metadata":{"name":"web","namespace":"prod"},"spec":` + row.want + "}"
		if err != nil || !sameJSON(t, got, want) {
			t.Errorf("%s: sent %s, %v\nwant %s", row.name, got, err, want)
		}
	}
}

// Optional fields of built-in types that lack omitempty are not claimed for their zeros; required
// ones are.
func TestApply_WhatBuiltInTypesPrintUnaskedIsNotClaimed_C4(t *testing.T) {
	for _, row := range []struct {
		obj  kube.Object
		want string
	}{
		{&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32)}}, `"spec":{"replicas":0}`},
		{&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}}, `"roleRef":{"kind":"Role","name":"r"}`},
		{&appsv1.ControllerRevision{}, `"revision":0`},
	} {
		got, err := applied(t, row.obj)
		if err != nil || !strings.Contains(got, `"namespace":"prod"},`+row.want+"}") && !strings.HasSuffix(got, row.want+"}") {
			t.Errorf("%T: sent %s, %v\nwant %s and no other field", row.obj, got, err, row.want)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	decode(t, a, &x)
	decode(t, b, &y)
	return reflect.DeepEqual(x, y)
}

// The server stores no stringData, so what is no longer in it could not be removed.
func TestApply_StringDataIsAppliedAsData_C4(t *testing.T) {
	typed := &corev1.Secret{Data: map[string][]byte{"a": []byte("old"), "b": []byte("2")}, StringData: map[string]string{"a": "1", "c": ""}}
	fields := map[string]any{"apiVersion": "v1", "kind": "Secret",
		"data": map[string]any{"a": "b2xk", "b": "Mg=="}, "stringData": map[string]any{"a": "1", "c": ""}}
	want := `"data":{"a":"MQ==","b":"Mg==","c":""}`
	configuration := applycorev1.Secret("web", "prod").WithData(typed.Data).WithStringData(typed.StringData)
	for _, obj := range []any{typed, &unstructured.Unstructured{Object: fields}, configuration} {
		got, err := appliedAny(t, obj)
		if err != nil || !strings.Contains(got, want) || strings.Contains(got, "stringData") {
			t.Errorf("%T: sent %s, %v\nwant %s and no stringData", obj, got, err, want)
		}
	}
	if len(fields["stringData"].(map[string]any)) != 2 || len(fields["data"].(map[string]any)) != 2 {
		t.Errorf("the caller's maps are %v", fields)
	}
	for _, wrong := range []map[string]any{
		{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"a": int64(1)}},
		{"apiVersion": "v1", "kind": "Secret", "data": "none", "stringData": map[string]any{"a": "1"}},
		{"apiVersion": "example.com/v1", "kind": "Secret", "stringData": map[string]any{"a": "1"}},
	} {
		if got, err := appliedAny(t, &unstructured.Unstructured{Object: wrong}); err != nil || !strings.Contains(got, "stringData") {
			t.Errorf("sent %s, %v; want that the server judges %v", got, err, wrong)
		}
	}
}

func TestApply_WhatTheServerSetsIsNotClaimed_C4(t *testing.T) {
	now := metav1.Unix(1, 0)
	grace := int64(0)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: now, DeletionTimestamp: &now,
		DeletionGracePeriodSeconds: &grace, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		Labels: map[string]string{"a": ""}, OwnerReferences: []metav1.OwnerReference{{UID: "o", Name: "o"}},
	}}
	cm.SetSelfLink("/x")
	got, err := applied(t, cm)
	want := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"a":""},"name":"web","namespace":"prod","ownerReferences":[{"apiVersion":"","kind":"","name":"o","uid":"o"}]}}`
	if err != nil || got != want {
		t.Errorf("sent %s, %v\nwant %s", got, err, want)
	}
}

type loop struct{ Next any }

func TestApply_ValuesThatAreNoJSONAreErrors_C4(t *testing.T) {
	l := &loop{}
	l.Next = l
	for name, spec := range map[string]SampleSpec{
		"points to itself": {Any: l},
		"channel":          {Any: make(chan int)},
		"function":         {Any: func() {}},
		"key":              {Any: map[float64]string{1: "x"}},
	} {
		if got, err := applied(t, &Sample{Spec: spec}); err == nil {
			t.Errorf("%s: sent %.80s, want an error", name, got)
		}
	}
}

// FuzzApply_DropsOnlyEmpties_C4 compares with a simple model, encoding/json: every
// value that was sent is in its output, and every value that was not is null there, a zero
// quantity, or an object of these.
func FuzzApply_DropsOnlyEmpties_C4(f *testing.F) {
	for _, seed := range []string{
		`{}`,
		`{"metadata":{"labels":{"a":"","b":"c"},"finalizers":[""]}}`,
		`{"spec":{"containers":[{"name":"a","ports":[{"containerPort":80}],"env":[{"name":"E","value":""}],"resources":{"limits":{"cpu":"0"}}}]}}`,
		`{"spec":{"securityContext":{},"terminationGracePeriodSeconds":0,"hostNetwork":false,"volumes":[{"name":"v","emptyDir":{}}]}}`,
		`{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":0,"path":""}},"readinessProbe":{"tcpSocket":{"port":"x"}}}],"tolerations":[{}]}}`,
		`{"spec":{"overhead":{"":"1"},"nodeSelector":{},"affinity":{"nodeAffinity":{}}},"status":{"phase":"x"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var p corev1.Pod
		if json.Unmarshal(data, &p) != nil {
			return
		}
		p.ObjectMeta.GenerateName = ""
		first, err := applied(t, &p)
		if err != nil {
			t.Fatalf("apply %s: %v; want every object that JSON can hold to be sent", data, err)
		}
		var sent, full map[string]any
		p.SetGroupVersionKind(podKind)
		p.Namespace, p.Name = "prod", "web"
		whole, err := json.Marshal(&p)
		if err != nil {
			t.Fatal(err)
		}
		decode(t, first, &sent)
		decode(t, string(whole), &full)
		delete(full, "status")
		for _, name := range []string{"managedFields", "resourceVersion", "creationTimestamp", "uid", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
			delete(full["metadata"].(map[string]any), name)
		}
		if where := missing("", full, sent); where != "" {
			t.Fatalf("of %s\nsent  %s\nwhich differs at %s: only empty values are left out", whole, first, where)
		}

		var again corev1.Pod
		decode(t, first, &again)
		second, err := applied(t, &again)
		if err != nil || first != second {
			t.Fatalf("applying what was sent sends %s, %v\nwant the same, %s", second, err, first)
		}
	})
}

func decode(t *testing.T, data string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), into); err != nil {
		t.Fatalf("read %s: %v", data, err)
	}
}

// missing returns where full has a non-empty value that sent lacks.
func missing(where string, full, sent any) string {
	switch sent := sent.(type) {
	case map[string]any:
		whole, _ := full.(map[string]any)
		for name := range sent {
			if _, ok := whole[name]; !ok {
				return where + "/" + name + " (sent, but not in the object)"
			}
		}
		for name, value := range whole {
			if got, ok := sent[name]; ok {
				if at := missing(where+"/"+name, value, got); at != "" {
					return at
				}
			} else if !blank(value) {
				return where + "/" + name + " (in the object, but not sent)"
			}
		}
		return ""
	case []any:
		whole, _ := full.([]any)
		if len(whole) != len(sent) {
			return where + " (another length)"
		}
		for i := range sent {
			if at := missing(fmt.Sprint(where, "/", i), whole[i], sent[i]); at != "" {
				return at
			}
		}
		return ""
	}
	if reflect.DeepEqual(full, sent) {
		return ""
	}
	return where + " (another value)"
}

func blank(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if !blank(inner) {
				return false
			}
		}
		return true
	}
	// A divisor has omitempty, and is a struct, so that encoding/json prints its zero.
	return value == nil || value == "0"
}

func BenchmarkApply(b *testing.B) {
	d := deployment("prod", "web")
	s := &script{answers: make([]reply, 0)}
	c, err := client.New(&rest.Config{Host: "http://api.test", Transport: s}, testScheme(b), client.Options{FieldOwner: "test"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Apply(b.Context(), d); err == nil {
			b.Fatal("the script has no answers")
		}
	}
}
