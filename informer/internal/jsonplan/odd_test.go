// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA5008 a plan meets such tags
//lint:file-ignore U1000 a plan meets such fields

package jsonplan

import (
	"encoding/json"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// odd has fields of every kind that a plan tells apart.
type odd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Bool         bool
	I8           int8
	I16          int16
	I32          int32
	I64          int64
	I            int
	U8           uint8
	U16          uint16
	U32          uint32
	U64          uint64
	F32          float32
	F64          float64
	Text         string
	Named        named
	Bytes        []byte
	Small        []small8
	Array        [3]int16
	Words        []string
	Lists        [][]string
	Flags        []*bool
	PBool        *bool
	PInt         *int32
	PText        *string
	PP           **string
	Map          map[string]string
	NamedMap     map[named]named
	Binary       map[string][]byte
	Structs      map[string]inner
	Pointers     map[string]*inner
	ByInt        map[int8]string
	ByUint       map[uint64]bool
	ByText       map[upper]int
	Any          any
	Anys         []any
	Tree         map[string]any
	NamedAny     empty
	Face         error
	Number       json.Number
	Raw          json.RawMessage
	Quoted       int64   `json:"quoted,string"`
	QuotedText   string  `json:"quotedText,string,omitempty"`
	QuotedBool   *bool   `json:",string"`
	QuotedFloat  float64 `json:"qf,string"`
	Upper        upper
	PUpper       *upper
	UpperList    []upper
	Loud         loud
	PLoud        *loud
	LoudMap      map[string]loud
	Nameless     struct{ metav1.Time }
	PNameless    *struct{ metav1.Time }
	Time         metav1.Time
	PTime        *metav1.Time
	Times        []metav1.Time
	Micro        metav1.MicroTime
	PMicro       *metav1.MicroTime
	Wait         metav1.Duration
	Quantity     resource.Quantity
	PQuantity    *resource.Quantity
	Resources    corev1.ResourceList
	Port         intstr.IntOrString
	PPort        *intstr.IntOrString
	Extension    runtime.RawExtension
	Self         *odd
	Inner        inner
	PInner       *inner
	Inners       []inner
	Hidden       string `json:"-"`
	Dash         string `json:"-,"`
	hidden       string
	Ümlaut       string
	Empty        struct{}
	Empties      []struct{}
	Conditions   []metav1.Condition
	Recursive    []odd
	RecursiveMap map[string]odd
	embedded1
	*Embedded2
	Embedded3 `json:"three"`
	word
	Word2
}

type (
	named  string
	small8 uint8
	empty  any
	word   string
	Word2  string
	inner  struct {
		A string         `json:"a"`
		B *int64         `json:"b,omitempty"`
		C map[string]any `json:"c"`
		D []inner        `json:"d"`
		E string         `json:"in valid"`
		F string         `json:"\"x"`
	}
	embedded1 struct {
		Promoted string
		Shadowed string
		Twice    string
		Deep     deep
		deep
	}
	deep struct {
		Deepest  int
		Shadowed int
	}
	Embedded2 struct {
		Behind string `json:"behind"`
		Twice  string
		Tagged string `json:"Word2"`
	}
	Embedded3 struct {
		Third bool
	}
)

// upper has its own UnmarshalText.
type upper string

func (u *upper) UnmarshalText(b []byte) error {
	if string(b) == "no" {
		return errors.New("no")
	}
	*u = upper(strings.ToUpper(string(b)))
	return nil
}

// loud has its own UnmarshalJSON.
type loud struct{ Text string }

func (l *loud) UnmarshalJSON(b []byte) error {
	if string(b) == `"no"` {
		return errors.New("no")
	}
	l.Text += string(b) + "!"
	return nil
}

// fleet is a custom resource.
type fleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Replicas  *int32                      `json:"replicas,omitempty"`
		Image     string                      `json:"image"`
		Resources corev1.ResourceRequirements `json:"resources,omitempty"`
		Selector  *metav1.LabelSelector       `json:"selector,omitempty"`
		Template  runtime.RawExtension        `json:"template,omitempty"`
		Options   map[string]string           `json:"options,omitempty"`
		Weights   []float64                   `json:"weights,omitempty"`
		Windows   []struct {
			From metav1.Time     `json:"from"`
			For  metav1.Duration `json:"for"`
		} `json:"windows,omitempty"`
	} `json:"spec"`
	Status *struct {
		ObservedGeneration int64              `json:"observedGeneration,omitempty"`
		Conditions         []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}
