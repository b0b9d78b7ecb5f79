// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/resource"
)

var version = schema.GroupVersion{Group: "example.flyball.dev", Version: "v1"}

// Database has a field of each sort that a kind may have.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DatabaseSpec   `json:"spec"`
	Status DatabaseStatus `json:"status,omitempty"`
}

type DatabaseSpec struct {
	Engine     Engine                      `json:"engine"`
	Replicas   *int32                      `json:"replicas,omitempty"`
	Paused     *bool                       `json:"paused,omitempty"`
	Class      *string                     `json:"class,omitempty"`
	Size       *apiresource.Quantity       `json:"size,omitempty"`
	Args       []string                    `json:"args,omitempty"`
	Key        []byte                      `json:"key,omitempty"`
	Ports      []Port                      `json:"ports,omitempty"`
	Pointers   []*Port                     `json:"pointers,omitempty"`
	Matrix     [][]int64                   `json:"matrix,omitempty"`
	Fixed      [2]*Port                    `json:"fixed,omitempty"`
	Parameters map[string]string           `json:"parameters,omitempty"`
	ByName     map[Engine][]Port           `json:"byName,omitempty"`
	Nested     map[string]map[string]*Port `json:"nested,omitempty"`
	Resources  corev1.ResourceRequirements `json:"resources,omitempty"`
	Template   *corev1.PodTemplateSpec     `json:"template,omitempty"`
	Selector   *metav1.LabelSelector       `json:"selector,omitempty"`
	Raw        runtime.RawExtension        `json:"raw,omitempty"`
	Window     *metav1.Duration            `json:"window,omitempty"`
	Hand       Hand                        `json:"hand,omitempty"`
	Hands      []Hand                      `json:"hands,omitempty"`
	Inlined    `json:",inline"`
}

// Engine is a string with a name.
type Engine string

// Inlined is embedded.
type Inlined struct {
	Extra []string `json:"extra,omitempty"`
}

type Port struct {
	Name   string            `json:"name"`
	Number int32             `json:"number"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Hand is copied by a method written by hand, which counts.
type Hand struct {
	Values []string `json:"values,omitempty"`
	Copies int      `json:"copies"`
}

func (h *Hand) DeepCopyInto(out *Hand) {
	out.Values = append([]string(nil), h.Values...)
	out.Copies = h.Copies + 1
}

type DatabaseStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Since              *metav1.Time       `json:"since,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

var databases = resource.Define[Database](version)

func (d *Database) DeepCopyObject() runtime.Object { return databases.DeepCopy(d) }

func port(n int) Port {
	return Port{Name: "p" + strconv.Itoa(n), Number: int32(n), Labels: map[string]string{"n": strconv.Itoa(n)}}
}

func full() *Database {
	size := apiresource.MustParse("1.5Gi")
	now := metav1.NewTime(time.Unix(1700000000, 0).UTC())
	return &Database{
		TypeMeta:   metav1.TypeMeta{APIVersion: version.String(), Kind: "Database"},
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default", Labels: map[string]string{"a": "b"}, Finalizers: []string{"f"}, CreationTimestamp: now, DeletionTimestamp: &now},
		Spec: DatabaseSpec{
			Engine: "pg", Replicas: new(int32(3)), Paused: new(true), Class: new("fast"), Size: &size,
			Args: []string{"x", "y"}, Key: []byte("secret"), Ports: []Port{port(1), port(2)},
			Pointers: []*Port{new(port(3)), nil}, Matrix: [][]int64{{1, 2}, nil, {}}, Fixed: [2]*Port{new(port(4)), nil},
			Parameters: map[string]string{"k": "v"}, ByName: map[Engine][]Port{"pg": {port(5)}, "none": nil},
			Nested:    map[string]map[string]*Port{"a": {"b": new(port(6)), "nil": nil}, "empty": {}, "nil": nil},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": apiresource.MustParse("100m")}},
			Template:  &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "E"}}}}}},
			Selector:  &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Values: []string{"v"}}}},
			Raw:       runtime.RawExtension{Raw: []byte(`{"a":1}`)}, Window: &metav1.Duration{Duration: time.Minute},
			Hand: Hand{Values: []string{"h"}}, Hands: []Hand{{Values: []string{"i"}}}, Inlined: Inlined{Extra: []string{"e"}},
		},
		Status: DatabaseStatus{ObservedGeneration: 2, Since: &now, Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}},
	}
}

// counted returns obj as its copy must be: Hand counts its copies.
func counted(d *Database) *Database {
	d.Spec.Hand.Copies++
	for i := range d.Spec.Hands {
		d.Spec.Hands[i].Copies++
	}
	return d
}

func TestKind_CopyEqualsItsOriginalAndSharesNothing_O1(t *testing.T) {
	original := full()
	copied := original.DeepCopyObject().(*Database)
	if want := counted(full()); !reflect.DeepEqual(copied, want) {
		t.Fatalf("the copy differs:\ngot  %+v\nwant %+v", copied, want)
	}
	if n := scramble(reflect.ValueOf(copied).Elem()); n < 60 {
		t.Fatalf("the test changed only %d values of the copy; it looks at too little", n)
	}
	if !reflect.DeepEqual(original, full()) {
		t.Errorf("a change of the copy changed its original:\n%+v", original)
	}
}

// scramble changes everything that v leads to, in place, and returns how many values those
// are. It leaves what a value does not export.
func scramble(v reflect.Value) (changed int) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			changed = scramble(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				changed += scramble(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			changed += scramble(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			changed += scramble(value)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(v.String() + "!")
		changed = 1
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
		changed = 1
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 1)
		changed = 1
	case reflect.Bool:
		v.SetBool(!v.Bool())
		changed = 1
	}
	return changed
}

func TestKind_NilAndEmptyAreKept_O1(t *testing.T) {
	for _, d := range []*Database{
		{},
		{Spec: DatabaseSpec{Args: []string{}, Key: []byte{}, Ports: []Port{}, Pointers: []*Port{}, Matrix: [][]int64{}, Parameters: map[string]string{}, ByName: map[Engine][]Port{}, Nested: map[string]map[string]*Port{}}},
	} {
		if got, want := databases.DeepCopy(d), counted(databases.DeepCopy(d)); reflect.DeepEqual(got, want) {
			t.Fatal("DeepCopy does not call the DeepCopyInto of Hand")
		}
		got := databases.DeepCopy(d)
		got.Spec.Hand.Copies = 0
		if !reflect.DeepEqual(got, d) {
			t.Errorf("got %#v, want %#v", got.Spec, d.Spec)
		}
	}
	if databases.DeepCopy(nil) != nil {
		t.Error("the copy of nil is an object")
	}
}

// Each field is filled or left out at random.
func TestKind_RandomObjectsAreCopied_O1(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		d := full()
		thin(reflect.ValueOf(d).Elem(), random)
		got := databases.DeepCopy(d)
		if want := counted(databases.DeepCopy(d)); reflect.DeepEqual(got, want) {
			t.Fatal("Hand was copied without its method")
		}
		for i := range got.Spec.Hands {
			got.Spec.Hands[i].Copies--
		}
		got.Spec.Hand.Copies--
		if !reflect.DeepEqual(got, d) {
			t.Fatalf("got %+v\nwant %+v", got, d)
		}
	}
}

// thin makes some of what v leads to zero.
func thin(v reflect.Value, random *rand.Rand) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && f.Type != reflect.TypeFor[Hand]() {
				thin(v.Field(i), random)
			}
		}
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if random.IntN(3) == 0 {
			v.SetZero()
		} else if v.Kind() == reflect.Pointer && !v.IsNil() {
			thin(v.Elem(), random)
		}
	}
}

func TestKind_SchemeKnowsKindAndList(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := databases.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Database", "DatabaseList"} {
		obj, err := scheme.New(version.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		gvks, _, err := scheme.ObjectKinds(obj)
		if err != nil || len(gvks) != 1 || gvks[0] != version.WithKind(kind) {
			t.Errorf("the kinds of %T are %v, %v; want %s", obj, gvks, err, kind)
		}
	}
}

func TestList_IsCopiedItemByItem_O1(t *testing.T) {
	list := &resource.List[Database]{ListMeta: metav1.ListMeta{ResourceVersion: "7", RemainingItemCount: new(int64(3))}, Items: []Database{*full()}}
	copied := list.DeepCopyObject().(*resource.List[Database])
	copied.Items[0].Spec.Ports[0].Labels["n"] = "changed"
	*copied.RemainingItemCount = 4
	if list.Items[0].Spec.Ports[0].Labels["n"] != "1" || *list.RemainingItemCount != 3 {
		t.Error("a change of the copied list changed the list")
	}
	if empty := (&resource.List[Database]{}).DeepCopyObject().(*resource.List[Database]); empty.Items != nil {
		t.Error("the copy of a list without items has some")
	}
}

// Kinds that are wrong, each in one way.
type (
	meta struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
	}
	NoMeta struct{}
	Any    struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              struct {
			Value any `json:"value"`
		} `json:"spec"`
	}
	Tree struct {
		Children []Tree `json:"children"`
	}
	Cyclic struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              Tree `json:"spec"`
	}
	IntKeys struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              map[int]string `json:"spec"`
	}
	Hidden struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		spec              string
	}
	Untagged struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		ReplicaCount      int
	}
	UntaggedInline struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Inlined
	}
	Channel struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              chan int `json:"spec"`
	}
	Copyless struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
	}
	Borrowed struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
	}
)

func (b *Borrowed) DeepCopyObject() runtime.Object { return databases.DeepCopy(&Database{}) }

func TestDefine_WhatIsWrongIsNamed_O2(t *testing.T) {
	_ = Hidden{spec: ""}
	for _, c := range []struct {
		kind interface {
			AddToScheme(*runtime.Scheme) error
		}
		want string
	}{
		{resource.Define[NoMeta](version), "does not embed metav1.TypeMeta; add the field"},
		{resource.Define[meta](version), "begins with a capital letter"},
		{resource.Define[string](version), "is not a struct"},
		{resource.Define[Database](schema.GroupVersion{Group: "g"}), "the version is empty"},
		{resource.Define[Any](version), "Any.Spec.Value: the interface interface {} cannot be decoded or copied; use runtime.RawExtension"},
		{resource.Define[Cyclic](version), "Cyclic.Spec.Children: the type resource_test.Tree contains itself"},
		{resource.Define[IntKeys](version), "IntKeys.Spec: the keys of map[int]string are not strings"},
		{resource.Define[Hidden](version), "Hidden.spec: the field is not exported"},
		{resource.Define[Untagged](version), "Untagged.ReplicaCount: the field has no json tag; add one such as `json:\"replicaCount\"`"},
		{resource.Define[UntaggedInline](version), "UntaggedInline.Inlined: the embedded struct has no json tag"},
		{resource.Define[Channel](version), "Channel.Spec: chan int has no JSON"},
		{resource.Define[Copyless](version), "*Copyless has no DeepCopyObject; add: func (obj *Copyless) DeepCopyObject()"},
		{resource.Define[Borrowed](version), "its DeepCopyObject returns a *resource_test.Database"},
	} {
		err := c.kind.AddToScheme(runtime.NewScheme())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}
