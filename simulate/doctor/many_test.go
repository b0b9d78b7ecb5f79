// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/doctor"
)

// A program that watches 10,000 objects of others comes to rest, and its bug is found.
func TestDoctor_AClusterOf10000Objects(t *testing.T) {
	op := shopOperator("second with the first")
	for i := range 10_000 {
		op.Cluster.Objects = append(op.Cluster.Objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("other-%d", i)}})
	}
	op.First = true
	r := doctor.Examine(t, op)
	for _, f := range r.Findings {
		t.Logf("%s by %s: %s", f.Class, f.Pattern, f.Text)
	}
	if len(r.Findings) == 0 || r.Findings[0].Class != doctor.OtherEnd || len(r.Skipped) > 0 {
		t.Errorf("there are %d findings after %d plans; not judged: %q", len(r.Findings), r.Ran, r.Skipped)
	}
}
