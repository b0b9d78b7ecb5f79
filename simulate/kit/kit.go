// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
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
	"github.com/flyball-dev/flyball/rights"
	"github.com/flyball-dev/flyball/simulate"
)

// Config of a Test. Seeds is required; the zero values of the other fields are fit for
// use.
type Config struct {
	// Seeds is the number of runs, with the seeds 1, 2, 3 and so on. The flag
	// -sim.seeds=N overrides it, and -sim.seed=0x2a runs only that seed.
	Seeds int
	// Vary makes a third of the runs variations of seeds that have shown something new,
	// if the seed decides on Faults. False: all runs are new seeds, which find the
	// planted bugs of simulate/kit/zoo sooner.
	Vary bool
	// CRDs are files of CustomResourceDefinitions in YAML or JSON, or directories of
	// such files, installed before the start.
	CRDs []string
	// Webhooks are files, or directories of files, of MutatingWebhookConfigurations and
	// ValidatingWebhookConfigurations, installed after Objects. The server calls them,
	// and the conversion webhooks of CRDs, over the network of a ready process that
	// serves the path, at a Service's name or at a URL with any host. Unless
	// Manager.Webhooks configures certificates, the kit creates one, and sets it where
	// caBundle is empty.
	Webhooks []string
	// Kinds that the server serves besides the built-in ones and CRDs, without a
	// schema.
	Kinds []simulate.Kind
	// Namespaces that exist at the start, besides default and the cluster's own.
	// Objects cannot be created in other namespaces.
	Namespaces []string
	// Objects that exist at the start, in order of creation.
	Objects []runtime.Object
	// Scheme of the Go types. Nil: that of client-go, with the built-in kinds.
	Scheme *runtime.Scheme
	// Actors of the cluster. Zero: none.
	Actors simulate.Actors
	// Manager is the program's options for manager.New. The kit sets the connection,
	// but for its WrapTransport, the scheme, the logger and the ports.
	Manager manager.Options
	// Process changes a copy of Manager for the process of that name, given to RunAs, such
	// as its shard: not its leader election. Nil: all have the same options.
	Process func(name string, opts *manager.Options)
	// Rights records the requests of the programs' managers, to compare them with the
	// program's RBAC manifests. Nil: they are not recorded.
	Rights *rights.Recorder
	// Unguarded are kinds, such as "Secret", that replicas write without leading, with
	// manager.Manager.StandbyClient. Leases and Events always are.
	Unguarded []string
	// Timed are controllers whose timers are for what no event tells, such as the state of
	// an outside service: V26 does not check them.
	Timed []string
	// Faults to inject. Nil: Swarm(), all that a controller must survive. An empty
	// Plan: none.
	Faults Plan
	// FaultPhase is the duration of the fault phase in virtual time. 0: 20 seconds.
	FaultPhase time.Duration
	// Quiesce bounds coming to rest after that. 0: 30 minutes, because a request that
	// is silently lost ends with the reconcile's hard deadline.
	Quiesce time.Duration
	// Stay is how long the result must then last while only time passes. 0: 5 minutes.
	Stay time.Duration
	// MaxEvents bounds the history of a run: one with more events ends at once, and
	// fails with the requests and keys that repeat. 0: 30,000; a scenario with a dozen
	// objects makes a thousand.
	MaxEvents int
	// Inexact is why another run of a seed may differ, such as "client-go's elector
	// draws its own jitter". No run is then repeated, and a failure and its page say
	// that the line may have to be run more than once. Empty: each seed has one
	// history.
	Inexact string

	completed             bool
	probes                *probes                      // of a sweep; nil: not kept
	patience              time.Duration                // of the watchdog, in real time; 0: the default
	definitions, webhooks []*unstructured.Unstructured // of CRDs and Webhooks
}

var (
	oneSeed  = flag.String("sim.seed", "", "run this seed of package kit's tests alone, such as 0x2a")
	allSeeds = flag.Int("sim.seeds", 0, "how many seeds package kit's tests run, in place of Config.Seeds")
	outDir   = flag.String("sim.out", "", "where package kit's tests write the histories of runs that fail; empty: a new directory")
)

// complete sets the defaults, and returns the first seed and the number of runs of a
// Test, or an error for misuse.
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
	case cfg.MaxEvents < 0:
		return 0, 0, fmt.Errorf("Config.MaxEvents is %d; give the number of events after which a run fails, or 0 for the usual", cfg.MaxEvents)
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
	cfg.MaxEvents = cmp.Or(cfg.MaxEvents, 30_000)
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
