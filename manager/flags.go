// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/internal/commandline"
	"github.com/flyball-dev/flyball/internal/health"
	"github.com/flyball-dev/flyball/webhook"
)

// option is the flag of one field of Options.
type option struct {
	name  string // of the flag, as in similar programs
	env   string // environment variable with the flag's default; empty: none
	usage string
	bool  bool // needs no value
	list  bool // accepts commas
	get   func(o *Options) string
	set   func(o *Options, text string) error
}

var flags = [...]option{
	{
		name:  "kubeconfig",
		usage: "`file` with the connection to the cluster (default: $KUBECONFIG, then in-cluster, then ~/.kube/config)",
		get:   func(o *Options) string { return o.Kubeconfig },
		set:   func(o *Options, text string) error { o.Kubeconfig = text; return nil },
	}, {
		name:  "context",
		usage: "`name` of the kubeconfig's context (default: its current one)",
		get:   func(o *Options) string { return o.Context },
		set:   func(o *Options, text string) error { o.Context = text; return nil },
	}, {
		name:  "as",
		usage: "`user` to impersonate in all requests, such as system:serviceaccount:prod:website, to test its permissions (default: none)",
		get:   func(o *Options) string { return o.Impersonate.UserName },
		set:   func(o *Options, text string) error { o.Impersonate.UserName = text; return nil },
	}, {
		name:  "as-group",
		usage: "comma-separated `groups` to impersonate (default: those that the server assigns to the user)",
		list:  true,
		get:   func(o *Options) string { return strings.Join(o.Impersonate.Groups, ",") },
		set: func(o *Options, text string) error {
			o.Impersonate.Groups = strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
			return nil
		},
	}, {
		name:  "user-agent",
		usage: "`text` shown in the server's audit log (default: the program's name and version)",
		get:   func(o *Options) string { return o.UserAgent },
		set:   func(o *Options, text string) error { o.UserAgent = text; return nil },
	}, {
		name:  "metrics-bind-address",
		env:   "METRICS_BIND_ADDRESS",
		usage: "`address` to serve metrics on; 0: none",
		get:   func(o *Options) string { return cmp.Or(o.MetricsAddress, defaultMetricsAddress) },
		set:   func(o *Options, text string) error { o.MetricsAddress = text; return nil },
	}, {
		name:  "metrics-secure",
		env:   "METRICS_SECURE",
		usage: "serve metrics over TLS",
		bool:  true,
		get:   func(o *Options) string { return strconv.FormatBool(o.MetricsServing.Secure) },
		set: func(o *Options, text string) (err error) {
			o.MetricsServing.Secure, err = strconv.ParseBool(text)
			return err
		},
	}, {
		name:  "metrics-cert-path",
		env:   "METRICS_CERT_PATH",
		usage: "`directory` with tls.crt and tls.key for the metrics server (default: self-signed, in memory)",
		get:   func(o *Options) string { return o.MetricsServing.CertDir },
		set:   func(o *Options, text string) error { o.MetricsServing.CertDir = text; return nil },
	}, {
		name:  "metrics-guard",
		env:   "METRICS_GUARD",
		usage: "serve metrics only to users whom the API server authorizes for their path",
		bool:  true,
		get:   func(o *Options) string { return strconv.FormatBool(o.MetricsServing.Guard) },
		set: func(o *Options, text string) (err error) {
			o.MetricsServing.Guard, err = strconv.ParseBool(text)
			return err
		},
	}, {
		name:  "profiling",
		usage: "serve profiles under /debug/pprof/ on the metrics address",
		bool:  true,
		get:   func(o *Options) string { return strconv.FormatBool(o.MetricsServing.Profiling) },
		set: func(o *Options, text string) (err error) {
			o.MetricsServing.Profiling, err = strconv.ParseBool(text)
			return err
		},
	}, {
		name:  "health-probe-bind-address",
		env:   "HEALTH_PROBE_BIND_ADDRESS",
		usage: "`address` to serve health and readiness on; 0: none (default: :8081 in a Pod, 127.0.0.1:8081 elsewhere)",
		get:   func(o *Options) string { return o.HealthAddress },
		set:   func(o *Options, text string) error { o.HealthAddress = text; return nil },
	}, {
		name:  "allowed-hosts",
		env:   "ALLOWED_HOSTS",
		usage: "comma-separated further `hosts` for which servers on loopback answer; *: any (default: localhost and loopback addresses)",
		list:  true,
		get:   func(o *Options) string { return strings.Join(o.AllowedHosts, ",") },
		set: func(o *Options, text string) error {
			o.AllowedHosts = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
			return nil
		},
	}, {
		name:  "webhook-bind-address",
		env:   "WEBHOOK_BIND_ADDRESS",
		usage: "`address` to serve webhooks on, if there are any",
		get:   func(o *Options) string { return cmp.Or(o.Webhooks.Address, webhook.DefaultAddress) },
		set:   func(o *Options, text string) error { o.Webhooks.Address = text; return nil },
	}, {
		name:  "webhook-cert-path",
		env:   "WEBHOOK_CERT_PATH",
		usage: "`directory` with tls.crt and tls.key for the webhook server",
		get:   func(o *Options) string { return cmp.Or(o.Webhooks.CertDir, webhook.DefaultCertDir()) },
		set:   func(o *Options, text string) error { o.Webhooks.CertDir = text; return nil },
	}, {
		name:  "webhook-drain-delay",
		env:   "WEBHOOK_DRAIN_DELAY",
		usage: "`time` for which webhooks continue to serve after a stop has begun; negative: none",
		get:   func(o *Options) string { return cmp.Or(o.Webhooks.DrainDelay, webhook.DefaultDrainDelay).String() },
		set:   func(o *Options, text string) error { return setTime(&o.Webhooks.DrainDelay, text) },
	}, {
		name:  "install-crds",
		env:   "INSTALL_CRDS",
		usage: "create or update the program's CustomResourceDefinitions at the start, if it has any",
		bool:  true,
		get:   func(o *Options) string { return strconv.FormatBool(!o.KeepCRDs) },
		set: func(o *Options, text string) error {
			on, err := strconv.ParseBool(text)
			o.KeepCRDs = !on
			return err
		},
	}, {
		name:  "watch-namespaces",
		env:   "WATCH_NAMESPACE",
		usage: "comma-separated `namespaces` to watch (default: all)",
		list:  true,
		get:   func(o *Options) string { return strings.Join(o.Informers.Namespaces, ",") },
		set: func(o *Options, text string) error {
			o.Informers.Namespaces = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
			return nil
		},
	}, {
		name:  "leader-elect",
		env:   "LEADER_ELECT",
		usage: "enable leader election, so that only one of several replicas reconciles",
		bool:  true,
		get:   func(o *Options) string { return strconv.FormatBool(o.LeaderElection != nil && !o.LeaderElection.Off) },
		set: func(o *Options, text string) error {
			on, err := strconv.ParseBool(text)
			o.elect(func(e *LeaderElection) { e.Off = !on })
			return err
		},
	}, {
		name:  "leader-election-id",
		env:   "LEADER_ELECTION_ID",
		usage: "`name` of the Lease for leader election (default: none)",
		get:   func(o *Options) string { return o.election().ID },
		set: func(o *Options, text string) error {
			o.elect(func(e *LeaderElection) { e.ID = text })
			return nil
		},
	}, {
		name:  "leader-election-namespace",
		env:   "LEADER_ELECTION_NAMESPACE",
		usage: "`namespace` of that Lease (default: the Pod's)",
		get:   func(o *Options) string { return o.election().Namespace },
		set: func(o *Options, text string) error {
			o.elect(func(e *LeaderElection) { e.Namespace = text })
			return nil
		},
	},
	{
		name:  "shard",
		usage: "`name` of the shard to act on, in a program with shards (default: the objects without the label)",
		get: func(o *Options) string {
			return o.sharding().Shard
		},
		set: func(o *Options, text string) error { o.setShard(text); return nil },
	},
	{
		name:  "shards",
		env:   "SHARDS",
		usage: "`number` of shards into which the replicas divide the objects; with 0 one replica does all the work",
		get:   func(o *Options) string { return strconv.Itoa(o.sharding().Shards) },
		set: func(o *Options, text string) (err error) {
			s := o.sharding()
			s.Shards, err = strconv.Atoi(text)
			o.Sharding = &s
			return err
		},
	}, {
		name:  "shard-by",
		env:   "SHARD_BY",
		usage: "`what` decides the shard of an object: uid or namespace",
		get:   func(o *Options) string { return string(cmp.Or(o.sharding().By, UID)) },
		set: func(o *Options, text string) error {
			s := o.sharding()
			s.By = ShardBy(text)
			o.Sharding = &s
			return nil
		},
	},
	electionTime("leader-elect-lease-duration", "LEADER_ELECT_LEASE_DURATION", "`time` after the leader's last renewal when another replica may take over",
		defaultLeaseDuration, func(e *LeaderElection) *time.Duration { return &e.LeaseDuration }),
	electionTime("leader-elect-renew-deadline", "LEADER_ELECT_RENEW_DEADLINE", "`time` for which the leader tries to renew before it ends (default: two thirds of the lease duration)",
		0, func(e *LeaderElection) *time.Duration { return &e.RenewDeadline }),
	electionTime("leader-elect-retry-period", "LEADER_ELECT_RETRY_PERIOD", "`time` between renewals (default: a fifth of the renew deadline)",
		0, func(e *LeaderElection) *time.Duration { return &e.RetryPeriod }),
	{
		name:  "graceful-shutdown-timeout",
		env:   "GRACEFUL_SHUTDOWN_TIMEOUT",
		usage: "`time` limit of a stop",
		get:   func(o *Options) string { return cmp.Or(o.GracePeriod, defaultGracePeriod).String() },
		set:   func(o *Options, text string) error { return setTime(&o.GracePeriod, text) },
	}, {
		name:  "stuck-after",
		env:   "STUCK_AFTER",
		usage: "`time` without progress, while work waits, before /livez fails; negative: never",
		get:   func(o *Options) string { return cmp.Or(o.StuckAfter, health.DefaultStuckAfter).String() },
		set:   func(o *Options, text string) error { return setTime(&o.StuckAfter, text) },
	}, {
		name:  "log-format",
		env:   "LOG_FORMAT",
		usage: "`format` of the log, text or json, unless the program sets its own logger",
		get:   func(o *Options) string { return cmp.Or(o.LogFormat, "text") },
		set:   func(o *Options, text string) error { o.LogFormat = text; return nil },
	}, {
		name:  "log-level",
		env:   "LOG_LEVEL",
		usage: "least `level` of the log: error, warn, info, debug or trace, unless the program sets its own logger",
		get:   func(o *Options) string { return cmp.Or(o.LogLevel, "info") },
		set:   func(o *Options, text string) error { o.LogLevel = text; return nil },
	}, {
		name:  "v",
		usage: "verbosity `level` of the log, unless the program sets its own logger",
		get:   func(o *Options) string { return strconv.Itoa(o.Verbosity) },
		set: func(o *Options, text string) (err error) {
			o.Verbosity, err = strconv.Atoi(text)
			return err
		},
	},
}

// electionTime returns the flag of a duration of the election. Its default is 0 if it
// derives from another.
func electionTime(name, env, usage string, otherwise time.Duration, of func(*LeaderElection) *time.Duration) option {
	return option{
		name:  name,
		env:   env,
		usage: usage,
		get: func(o *Options) string {
			e := o.election()
			if d := cmp.Or(*of(&e), otherwise); d != 0 {
				return d.String()
			}
			return ""
		},
		set: func(o *Options, text string) (err error) {
			o.elect(func(e *LeaderElection) { err = setTime(of(e), text) })
			return err
		},
	}
}

func setTime(d *time.Duration, text string) (err error) {
	*d, err = time.ParseDuration(text)
	return err
}

// election returns the leader election in o; one that only flags configure is off until
// -leader-elect is set.
func (o *Options) election() LeaderElection {
	if o.LeaderElection == nil {
		return LeaderElection{Off: true}
	}
	return *o.LeaderElection
}

// elect changes a copy, not the program's value.
func (o *Options) elect(change func(e *LeaderElection)) {
	e := o.election()
	change(&e)
	o.LeaderElection = &e
}

// BindFlags defines flags on fs that set the fields of o when fs is parsed:
//
//	-kubeconfig, -context, -as, -as-group, -user-agent
//	-metrics-bind-address, -metrics-secure, -metrics-cert-path, -metrics-guard, -profiling
//	-health-probe-bind-address, -allowed-hosts
//	-webhook-bind-address, -webhook-cert-path, -webhook-drain-delay
//	-install-crds, -watch-namespaces, -shard, -shards, -shard-by
//	-leader-elect, -leader-election-id, -leader-election-namespace
//	-leader-elect-lease-duration, -leader-elect-renew-deadline, -leader-elect-retry-period
//	-graceful-shutdown-timeout, -stuck-after, -log-format, -log-level, -v
//	-config, a file with values of flags
//
// Most flags take their default from an environment variable with the flag's name in
// capitals, such as METRICS_BIND_ADDRESS; -help shows it. That of -watch-namespaces is
// WATCH_NAMESPACE. -kubeconfig, -context, -as, -as-group, -user-agent, -profiling,
// -shard and -v have none, because those names are too short or mean something else to other
// programs.
//
// A flag overrides its variable, a variable the file, and the file the value in o. A
// flag of the same name that fs already has (another library's -kubeconfig) is shared:
// its value applies if it is not empty. A variable that does not parse is remembered;
// New returns the error. o must not be copied between BindFlags and the parsing of fs.
//
// The file of -config is a YAML mapping of flag names to values; flags that accept
// commas may have lists. It can set every flag that fs has when it is parsed, including
// those of the program (a flag that collects values gets that of the file in addition).
// It is read where -config is on the command line. An error in it is an error of
// fs.Parse, and then none of it applies. If fs has a -config before BindFlags, that
// flag belongs to the program, and no file is read.
func (o *Options) BindFlags(fs *flag.FlagSet) {
	if fs == nil {
		o.misuse = append(o.misuse, errors.New("bind flags: the flag set is nil; give flag.CommandLine"))
		return
	}
	for _, row := range flags {
		usage := row.usage
		if row.env != "" {
			usage += " (or $" + row.env + ")"
			if text := os.Getenv(row.env); text != "" {
				o.misused("environment variable "+row.env, row.set(o, text))
				o.decide(row.name)
			}
		}
		if have := fs.Lookup(row.name); have != nil {
			if o.borrowed == nil {
				o.borrowed = map[string]*flag.Flag{}
			}
			o.borrowed[row.name] = have
			continue
		}
		fs.Var(flagValue{o, row}, row.name, usage)
	}
	if fs.Lookup(configFlag) == nil {
		fs.Var(configFile{o, fs}, configFlag, "YAML `file` with values for flags that are set neither on the command line nor by a variable (default: none)")
	}
}

// ParseFlags parses args, such as os.Args[1:], in place of fs.Parse, for programs that take
// flags alone. Arguments are refused with the flag that is likely meant: a program that ignored
// them would, with the dash of -simulate forgotten, act on the cluster of the kubeconfig. For an
// unknown flag the nearest is named before the usage. As with fs.Parse, the error handling of
// fs decides whether an error is returned or ends the process, with exit code 2.
func ParseFlags(fs *flag.FlagSet, args []string) error { return commandline.Parse(fs, args) }

// decide prevents the file of -config from changing that flag.
func (o *Options) decide(name string) {
	if o.decided == nil {
		o.decided = map[string]bool{}
	}
	o.decided[name] = true
}

func (o *Options) misused(where string, err error) {
	if err != nil {
		o.misuse = append(o.misuse, fmt.Errorf("%s: %w", where, err))
	}
}

// readBorrowed reads the flags that other packages have defined.
func (o *Options) readBorrowed() error {
	var failed []error
	for _, row := range flags {
		if f := o.borrowed[row.name]; f != nil && f.Value.String() != "" {
			if err := row.set(o, f.Value.String()); err != nil {
				failed = append(failed, fmt.Errorf("flag -%s: %w", row.name, err))
			}
		}
	}
	return errors.Join(failed...)
}

// flagValue implements flag.Value for one field of o.
type flagValue struct {
	o   *Options
	row option
}

// String is also called on the zero flagValue.
func (v flagValue) String() string {
	if v.o == nil {
		return ""
	}
	return v.row.get(v.o)
}

func (v flagValue) Set(text string) error {
	v.o.decide(v.row.name)
	return v.row.set(v.o, text)
}

// IsBoolFlag makes package flag accept -name for -name=true.
func (v flagValue) IsBoolFlag() bool { return v.row.bool }
