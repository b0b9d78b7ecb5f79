// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
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
