// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
)

var peer = flag.Bool("peer", false, "run the suites of Karpenter, RabbitMQ, ECK and Kueue on controller-runtime's own cache and client")

// Variables in the environment of a copy's suite.
const (
	onPeer       = "FLYBALL_GUESTS_PEER=1"     // controller-runtime's cache and client
	withoutWaits = "FLYBALL_GUESTS_NO_WAITS=1" // a client that reads once after a write
)

// karpenter is an operator whose reconcilers read what they have just written. Its suites
// therefore write by a client that reads the object after each write, until the cache has
// the write or 100 times. Without waits it reads once: some specs use what it has read.
var karpenter = foreign{
	module: "sigs.k8s.io/karpenter@v1.15.0",
	swaps: map[string][]swap{"pkg/test/environment.go": {
		{`lo.Must(cache.New(environment.Config, `, `lo.Must(newCache(environment.Config, `, 1},
		{`Client: lo.Must(client.New(environment.Config, `, `Client: lo.Must(newClient(environment.Config, `, 1},
	}, "pkg/test/cachesyncingclient.go": {
		{"\t\tSteps:    100,", "\t\tSteps:    looks(),", 1},
	}},
	files: map[string]string{"pkg/test/flyball.go": `package test

import (
	"os"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bridge "` + theBridge + `"
)

var newCache, newClient = bridge.NewCache, bridge.NewClient

func init() {
	if ` + set(onPeer) + ` {
		newCache, newClient = cache.New, client.New
	}
}

// looks is how often the client that waits looks at the cache after a write.
func looks() int {
	if ` + set(withoutWaits) + ` {
		return 1
	}
	return 100
}
`},
	packages: []string{"./pkg/..."},
}

// set returns the expression that is true if a variable of the environment is set.
func set(variable string) string {
	name, _, _ := strings.Cut(variable, "=")
	return `os.Getenv("` + name + `") != ""`
}

// karpenterSuites are the suites of Karpenter that have a cache, with the numbers of their
// specs.
var karpenterSuites = []struct {
	pkg   string
	specs int
}{
	{"controllers/capacitybuffer", 63},
	{"controllers/node/hydration", 2},
	{"controllers/node/legacyrepair", 18},
	{"controllers/node/termination", 32},
	{"controllers/node/termination/terminator", 18},
	{"controllers/nodeclaim/consistency", 3},
	{"controllers/nodeclaim/disruption", 49},
	{"controllers/nodeclaim/expiration", 10},
	{"controllers/nodeclaim/garbagecollection", 5},
	{"controllers/nodeclaim/hydration", 2},
	{"controllers/nodeclaim/lifecycle", 83},
	{"controllers/nodeclaim/podevents", 5},
	{"controllers/nodeclaim/reboot", 31},
	{"utils/node", 7},
	{"utils/nodeclaim", 4},
	{"utils/pdb", 19},
}

// TestKarpenter_OnTheBridge runs Karpenter's suites with the bridge's cache and client: as
// they are, and with writes that do not wait for the cache, where each spec must pass at its
// first attempt.
// With -peer it runs them on controller-runtime's: how many pass without waits is then a
// matter of chance, and only logged.
func TestKarpenter_OnTheBridge(t *testing.T) {
	t.Parallel()
	simulated, at := simulatedBinaries(t), karpenter.copied(t)
	outputIn(t, at, "go", "build", "-mod=mod", karpenter.packages[0]) // what the suites, which are built at once, have in common
	for _, k := range karpenterSuites {
		t.Run(strings.ReplaceAll(k.pkg, "/", "."), func(t *testing.T) {
			t.Parallel()
			pkg := "pkg/" + k.pkg
			s := suite{name: k.pkg, dir: filepath.Join(at, pkg), binary: karpenter.build(t, at, pkg)}
			t.Run("real", func(t *testing.T) { s.all(t, realBinaries(t), k.specs) })
			t.Run("simulated", func(t *testing.T) { s.all(t, simulated, k.specs) })
			t.Run("without-waits", func(t *testing.T) {
				s := s
				s.once, s.env = true, []string{withoutWaits}
				s.all(t, realBinaries(t), k.specs)
			})
		})
	}
}

// all runs a suite of which as many specs have to pass as it has. With -peer it logs how many
// do.
func (s suite) all(t *testing.T, binaries string, want int) {
	t.Helper()
	if *peer {
		s.env = append([]string{onPeer}, s.env...)
		specs, err := s.attempt(t, binaries)
		t.Logf("%d of %d specs pass on controller-runtime (%v)", passed(specs), want, err)
		return
	}
	specs := s.run(t, binaries)
	hold(t, specs, nil)
	if got := passed(specs); got != want {
		t.Errorf("%d specs pass, want %d", got, want)
	}
}

// passed returns how many specs pass.
func passed(specs types.SpecReports) int {
	return specs.WithLeafNodeType(types.NodeTypeIt).CountWithState(types.SpecStatePassed)
}
