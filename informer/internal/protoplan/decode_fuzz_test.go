// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package protoplan

import (
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer/internal/share"
)

// Whatever the bytes: what a plan reads is what Unmarshal reads. Each message is
// decoded until its parts are shared.
func FuzzPlan_DecodesAsUnmarshal_D1(f *testing.F) {
	all := kinds()
	for n, of := range all {
		if n%12 != 0 && of != reflect.TypeFor[corev1.Pod]() {
			continue
		}
		obj := reflect.New(of)
		filler{rand.New(rand.NewPCG(uint64(n), 0)), n%2 == 0}.fill(obj.Elem(), 4)
		raw, err := obj.Interface().(protobuf).Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint16(n), raw)
	}
	var plans Plans
	table := share.NewTable()
	f.Fuzz(func(t *testing.T, n uint16, raw []byte) {
		of := all[int(n)%len(all)]
		plan, err := plans.Of(of, nil)
		if err != nil {
			t.Skip()
		}
		usual := both(t, plan, of, raw, Options{})
		for range 3 {
			if both(t, plan, of, raw, Options{Table: table}) != usual {
				t.Fatal("with shared parts another message is usual")
			}
		}
	})
}
