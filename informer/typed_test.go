// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/kube"
)

// Each field of an event reaches a typed handler.
func TestEventAs_LosesNothing(t *testing.T) {
	var e kube.Event[kube.Object]
	v := reflect.ValueOf(&e).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Uint8:
			f.SetUint(uint64(kube.Updated))
		case reflect.Interface:
			f.Set(reflect.ValueOf(&unstructured.Unstructured{}))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Struct:
			f.Set(reflect.ValueOf(fixture.Named("a")))
		}
	}
	got := reflect.ValueOf(eventAs[*unstructured.Unstructured](e))
	for i := range got.NumField() {
		if got.Field(i).IsZero() {
			t.Errorf("%s is lost", got.Type().Field(i).Name)
		}
	}
}
