// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/internal/manifest"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate"
)

// Config of a Test. Seeds is needed; the rest has zeros that are fit for use.
type Config struct {
	// Seeds is how many runs there are, with the seeds 1, 2, 3 and so on. If Faults are a
	// swarm, a third of the runs are variations of seeds that have shown something new.
	// The flag -sim.seeds=N takes its place, and -sim.seed=0x2a runs that one alone.
	Seeds int
	// CRDs are files of CustomResourceDefinitions in YAML or JSON, or directories of
	// such files, installed before the start.
	CRDs []string
	// Webhooks are files, or directories of files, of MutatingWebhookConfigurations and
	// ValidatingWebhookConfigurations, installed when Objects are there. The server
	// calls them, and the conversion webhooks of CRDs, over the network of a process
	// that is ready and serves the path: at a Service's name or at a URL, whatever its
	// host. Unless Manager.Webhooks says where certificates come from, the kit makes
	// one, and has what names no caBundle trust it.
	Webhooks []string
	// Kinds that the server serves besides the built-in ones and CRDs, without a
	// schema.
	Kinds []simulate.Kind
	// Namespaces that are there at the start, besides default and those of the
	// cluster's own. Nothing can be created in one that is not there.
	Namespaces []string
	// Objects that are there at the start, in the order they are created.
	Objects []runtime.Object
	// Scheme of the Go types. Nil: client-go's, with the built-in kinds.
	Scheme *runtime.Scheme
	// Actors of the cluster. Zero: none.
	Actors simulate.Actors
	// Manager is what the program gives manager.New. The connection, the scheme,
	// the logger and the ports are the kit's.
	Manager manager.Options
	// Unguarded are kinds, such as "Secret", that replicas write without leading, by
	// manager.Manager.StandbyClient. Leases and Events always are.
	Unguarded []string
	// Faults are what goes wrong. Nil: Swarm(), all that a controller must bear.
	// An empty Plan: nothing.
	Faults Plan
	// FaultPhase is for how long things go wrong, in virtual time. 0: 20 seconds.
	FaultPhase time.Duration
	// Quiesce is how long coming to rest may take after that. 0: 30 minutes, since
	// a request that is lost without a word ends with the reconcile's hard deadline.
	Quiesce time.Duration
	// Stay is for how long what was reached must last with only time passing.
	// 0: 5 minutes.
	Stay time.Duration
	// Inexact says why another run of a seed may differ, such as "client-go's
	// elector draws its own jitter". No run is then done twice, and a failure and
	// its page say that the line may have to be run more than once. Empty: each seed
	// has one history.
	Inexact string

	completed             bool
	probes                *probes                      // of a sweep; nil: none are kept
	patience              time.Duration                // of the watchdog, in real time; 0: the usual
	definitions, webhooks []*unstructured.Unstructured // of CRDs and Webhooks
}

var (
	oneSeed  = flag.String("sim.seed", "", "run this seed of package kit's tests alone, such as 0x2a")
	allSeeds = flag.Int("sim.seeds", 0, "how many seeds package kit's tests run, in place of Config.Seeds")
	outDir   = flag.String("sim.out", "", "where package kit's tests write the histories of runs that fail; empty: a new directory")
)

// complete fills in what has been left out, and returns the first seed of a Test and how many
// runs there are, or the misuse.
func (cfg *Config) complete(noScenario bool) (first uint64, count int, err error) {
	count = cfg.Seeds
	if *allSeeds > 0 {
		count = *allSeeds
	}
	switch {
	case noScenario:
		return 0, 0, errors.New("the scenario is nil; give a func(w *kit.World) that runs the program and changes things")
	case count <= 0:
		return 0, 0, fmt.Errorf("Config.Seeds is %d; say how many runs there are to be, such as Seeds: 200", cfg.Seeds)
	case cfg.FaultPhase < 0 || cfg.Quiesce < 0 || cfg.Stay < 0:
		return 0, 0, errors.New("Config has a negative time; give FaultPhase, Quiesce and Stay in virtual time, or 0 for the usual")
	}
	if err := cfg.Faults.misuse(); err != nil {
		return 0, 0, err
	}
	if cfg.Faults == nil {
		cfg.Faults = Swarm()
	}
	if cfg.Scheme == nil {
		cfg.Scheme = defaultScheme()
	}
	cfg.FaultPhase = or(cfg.FaultPhase, 20*time.Second)
	cfg.Quiesce = or(cfg.Quiesce, 30*time.Minute)
	cfg.Stay = or(cfg.Stay, 5*time.Minute)
	if err := cfg.read(); err != nil {
		return 0, 0, err
	}
	cfg.completed = true
	if *oneSeed != "" {
		seed, err := strconv.ParseUint(*oneSeed, 0, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("-sim.seed=%s: %w; give a number, such as 0x2a", *oneSeed, err)
		}
		return seed, 1, nil
	}
	return 1, count, nil
}

// read reads the files that are named.
func (cfg *Config) read() (err error) {
	isDefinition := func(u *unstructured.Unstructured) bool { return u.GetKind() == manifest.Definition }
	if cfg.definitions, err = manifest.Read(cfg.CRDs, manifest.Definition, isDefinition); err != nil {
		return fmt.Errorf("Config.CRDs: %w; paths are relative to the directory of the test", err)
	}
	if cfg.webhooks, err = manifest.Read(cfg.Webhooks, "webhook configuration", manifest.IsWebhookConfiguration); err != nil {
		return fmt.Errorf("Config.Webhooks: %w; paths are relative to the directory of the test", err)
	}
	return nil
}

func or(d, zero time.Duration) time.Duration {
	if d == 0 {
		return zero
	}
	return d
}

func defaultScheme() *runtime.Scheme { return clientscheme.Scheme }
