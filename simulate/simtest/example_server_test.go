// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

func newServer(t *testing.T, scheme *runtime.Scheme, cron *batchv1.CronJob) *simtest.Server {
	return simtest.New(t, scheme, cron) // its Client for the test, its Config for a manager
}

// A nil scheme is client-go's.
func ExampleServer() {
	var t *testing.T // that of the test

	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "backup"}}
	server := newServer(t, nil, cron)
	if err := server.Client.Get(t.Context(), kube.KeyOf(cron), cron); err != nil {
		t.Error(err)
	}
}
