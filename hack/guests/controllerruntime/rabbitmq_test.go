// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// rabbitMQ is RabbitMQ's cluster operator.
var rabbitMQ = foreign{
	module: "github.com/rabbitmq/cluster-operator/v2@v2.20.0",
	swaps: map[string][]swap{rabbitMQSuite + "/suite_test.go": {
		{`ctrl.NewManager(cfg, ctrl.Options{`, `ctrl.NewManager(cfg, options(ctrl.Options{`, 1},
		{"\t\t\tBindAddress: \"0\",\n\t\t},\n\t})\n", "\t\t\tBindAddress: \"0\",\n\t\t},\n\t}))\n", 1},
	}},
	files:    map[string]string{rabbitMQSuite + "/flyball_test.go": theOptions("controllers_test")},
	packages: []string{"./" + rabbitMQSuite},
}

const (
	rabbitMQSuite = "internal/controller"
	rabbitMQSpecs = 62
)

// TestRabbitMQ_OnTheBridge runs the suite of RabbitMQ's controllers with the one line.
func TestRabbitMQ_OnTheBridge(t *testing.T) {
	t.Parallel()
	simulated, at := simulatedBinaries(t), rabbitMQ.copied(t)
	s := suite{name: "rabbitmq", dir: filepath.Join(at, rabbitMQSuite), binary: rabbitMQ.build(t, at, rabbitMQSuite)}
	t.Run("real", func(t *testing.T) { s.all(t, realBinaries(t), rabbitMQSpecs) })
	t.Run("simulated", func(t *testing.T) { s.all(t, simulated, rabbitMQSpecs) })
}

// TestExamined_RabbitMQ lets doctor examine RabbitMQ's operator, and shows on a real server what it has found. Both are in
// a file that is added to the package of its suite.
func TestExamined_RabbitMQ(t *testing.T) {
	const added = "testdata/examined/rabbitmq"
	f := foreign{
		module: rabbitMQ.module, kept: "examined-", packages: rabbitMQ.packages, files: map[string]string{},
		// It asks the brokers, which are not there.
		swaps: map[string][]swap{rabbitMQSuite + "/rabbitmqcluster_controller.go": {
			{"if err := r.updateQuorumStatus(ctx, rabbitmqCluster); err != nil {", "if err := ctx.Err(); err != nil {", 1},
		}},
	}
	for _, name := range []string{"examined_test.go", "cluster.yaml"} {
		text, err := os.ReadFile(filepath.Join(added, name))
		must(t, err)
		f.files[rabbitMQSuite+"/"+name] = string(text)
	}
	at := f.copied(t)
	// Most fields only lengthen the search.
	crd := filepath.Join(at, "config", "crd", "bases", "rabbitmq.com_rabbitmqclusters.yaml")
	short, err := os.ReadFile(ruled(t, crd, map[string]string{
		"spec.affinity": opaque, "spec.imagePullSecrets": opaque, "spec.override": opaque, "spec.secretBackend": opaque, "spec.tls": opaque, "spec.tolerations": opaque,
	}))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(at, rabbitMQSuite, "short.yaml"), short, 0o600))
	binary := f.build(t, at, rabbitMQSuite)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run=^TestExamined", "-test.v", "-test.timeout="+within.String())
	cmd.Dir = filepath.Join(at, rabbitMQSuite)
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("%s", said)
}
