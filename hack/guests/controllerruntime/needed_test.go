// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

// Imports of the suites that their packages lack: go mod tidy must keep the modules.
import (
	_ "github.com/google/go-cmp/cmp/cmpopts"
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega/gbytes"
	_ "github.com/onsi/gomega/ghttp"
	_ "github.com/prometheus/client_golang/prometheus/testutil"
	_ "go.uber.org/goleak"
	_ "go.uber.org/zap/zapcore"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/controller-runtime/pkg/client/fake"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest/komega"
	_ "sigs.k8s.io/controller-runtime/pkg/log/zap"
	_ "sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	_ "sigs.k8s.io/jobset/pkg/controllers"
	_ "sigs.k8s.io/jobset/test/util"
	_ "sigs.k8s.io/lws/pkg/controllers"
	_ "sigs.k8s.io/lws/test/testutils"
	_ "sigs.k8s.io/randfill"
	_ "sigs.k8s.io/yaml"
)
