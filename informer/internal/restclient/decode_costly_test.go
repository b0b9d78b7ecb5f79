// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/kube"
)

// A quantity whose parsing takes far more than its text is not parsed: the parser would
// accept it. Only that object is undecodable, in lists and watches, JSON and protobuf.
func TestDecode_CostlyQuantityIsSetApartAndNotParsed_B24(t *testing.T) {
	d := decoderOf[*corev1.Pod](t, fixture.PodKind)
	check := func(how string, item listwatch.Item[kube.Object]) {
		t.Helper()
		if item.Err == nil || !strings.Contains(item.Err.Error(), "digits when written out") || !strings.Contains(item.Err.Error(), `"1e201"`) ||
			item.Key.Name != "b" || item.ResourceVersion != "3" {
			t.Errorf("%s: got %s@%s, %v; want b@3 with an error that names the quantity", how, item.Key, item.ResourceVersion, item.Err)
		}
	}
	for where, spec := range map[string]string{
		"a map":                   `{"overhead":{"cpu":"1e201"}}`,
		"a list":                  `{"containers":[{},{"resources":{"limits":{"cpu":1,"memory":"1e201"}}}]}`,
		"a pointer":               `{"volumes":[{"emptyDir":{"sizeLimit":"1e201"}}]}`,
		"what the plan reads not": `{"overhead":{},"overhead":{"cpu":"1e201"}}`,
	} {
		pod := `"metadata":{"name":"b","resourceVersion":"3"},"spec":` + spec + `}`
		page, err := d.page(ContentJSON, []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}},{`+pod+`,{"metadata":{"name":"c"}}]}`))
		if err != nil || len(page.Items) != 3 || page.Items[0].Err != nil || page.Items[2].Err != nil {
			t.Fatalf("%s: %d items, %v; want three, of which one is set apart", where, len(page.Items), err)
		}
		check(where, page.Items[1])
		frame, err := d.frame(false, []byte(`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1",`+pod+`}`))
		if err != nil {
			t.Fatal(err)
		}
		check(where+", watched", frame.Item)
		u := decoderOf[*unstructured.Unstructured](t, fixture.PodKind).jsonItem([]byte(`{`+pod), false, decodelimit.Alone())
		if u.Err != nil {
			t.Errorf("%s: an Unstructured: %v, want the object: it parses no quantity", where, u.Err)
		}
	}

	meta := &metav1.ObjectMeta{Name: "b", ResourceVersion: "3"}
	metadata, _ := meta.Marshal()
	for where, spec := range map[string]*corev1.PodSpec{
		"a map":     {Overhead: corev1.ResourceList{"cpu": resource.MustParse("1e201")}},
		"a list":    {Containers: []corev1.Container{{}, {Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1e201")}}}}},
		"a pointer": {Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1e201"))}}}}},
	} {
		raw, err := spec.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		check("protobuf, "+where, d.protobufItem(appendField(appendField(nil, 1, metadata), 2, raw), decodelimit.Alone()))
	}
}

// What has no plan is decoded by the reference, or by the type's own Unmarshal.
func TestDecode_CostlyQuantityOfATypeWithoutAPlan_B24(t *testing.T) {
	if err := readByReference([]byte(`{"spec":{"overhead":{"cpu":"1e201"}}}`), &corev1.Pod{}); err == nil {
		t.Error("the reference parsed the quantity")
	}
	d := decoderOf[*corev1.Pod](t, fixture.PodKind)
	d.proto = nil
	if _, err := d.unmarshalInto(reflect.New(d.object).Interface().(*corev1.Pod), appendField(nil, 2, []byte("\x82\x02\x0e\x0a\x03cpu\x12\x07\x0a\x051e201"))); err == nil {
		t.Error("the type's own Unmarshal parsed the quantity")
	}
}
