// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func encodedField(number byte, value []byte) []byte {
	out := []byte{number<<3 | 2}
	n := len(value)
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(append(out, byte(n)), value...)
}

// ordinary returns a Pod with a value of each shape.
func ordinary() []byte {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "web", "tier": "front"}, CreationTimestamp: metav1.Now()}}
	grace := int64(3)
	pod.DeletionGracePeriodSeconds = &grace
	for range 20 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: "web", Args: []string{"a", "b", "c"}, Env: []corev1.EnvVar{{Name: "A", Value: "a"}},
			Resources:       corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")}},
			SecurityContext: &corev1.SecurityContext{}, LivenessProbe: &corev1.Probe{PeriodSeconds: 3},
		})
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "k"})
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "Ready", LastTransitionTime: metav1.Now()})
	}
	out, _ := pod.Marshal()
	return out
}

func TestPlan_NeverWeighsLessThanDecodingAllocates_B13(t *testing.T) {
	const noise = 32 << 10
	plan := protoPlanOf(reflect.TypeFor[*corev1.Pod]())
	var entries []byte
	for i := range 4000 {
		entries = append(entries, encodedField(7, encodedField(1, []byte{'a' + byte(i%26), byte('a' + i/26%26), byte('a' + i/676)}))...) // nodeSelector
	}
	for name, message := range map[string][]byte{
		"ordinary":               ordinary(),
		"empty containers":       encodedField(2, bytes.Repeat(encodedField(2, nil), 10_000)),
		"containers of one name": encodedField(2, bytes.Repeat(encodedField(2, encodedField(1, []byte("a"))), 10_000)),
		"empty variables":        encodedField(2, encodedField(2, bytes.Repeat(encodedField(7, nil), 10_000))),
		"empty arguments":        encodedField(2, encodedField(2, bytes.Repeat(encodedField(4, nil), 10_000))),
		"a map":                  encodedField(2, entries),
		"labels":                 encodedField(1, bytes.Repeat(encodedField(11, encodedField(1, []byte("a"))), 10_000)),
		"specs":                  bytes.Repeat(encodedField(2, nil), 10_000),
	} {
		weight, err := plan.Weigh(message, math.MaxInt64)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var pod corev1.Pod
		took := allocated(func() { err = pod.Unmarshal(message) })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if took > weight+noise {
			t.Errorf("%s: %d bytes are allocated for %d, and it weighs %d", name, took, len(message), weight)
		}
		if took > 128<<10 && weight > 20*took {
			t.Errorf("%s: %d bytes are allocated, and it weighs %d, which refuses what is harmless", name, took, weight)
		}
		if bound := plan.Bound(int64(len(message))); bound < weight {
			t.Errorf("%s: it weighs %d, more than the bound of %d", name, weight, bound)
		}
	}
	if _, err := plan.Weigh(encodedField(2, bytes.Repeat(encodedField(2, nil), 1<<20)), 1<<20); !errors.Is(err, errMessageHeavy) {
		t.Errorf("a million empty containers: %v, want errMessageHeavy", err)
	}
	for _, garbage := range [][]byte{nil, {0xff}, {0x0a, 0x7f}, []byte("<html>")} {
		if _, err := plan.Weigh(garbage, math.MaxInt64); err != nil {
			t.Errorf("%q: %v, want no weight and no error", garbage, err)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	message, plan := ordinary(), protoPlanOf(reflect.TypeFor[*corev1.Pod]())
	b.Run("weigh", func(b *testing.B) {
		for b.Loop() {
			_, _ = plan.Weigh(message, math.MaxInt64)
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			_ = (&corev1.Pod{}).Unmarshal(message)
		}
	})
}
