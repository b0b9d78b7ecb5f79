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

	"github.com/flyball-dev/flyball/manager/internal/health"
	"github.com/flyball-dev/flyball/webhook"
)

// option is one field of Options as a flag.
type option struct {
	name  string // of the flag, as the field's tools call it
	env   string // variable that gives the flag's default; empty: none
	usage string
	bool  bool // it needs no value
	list  bool // it takes commas
	get   func(o *Options) string
	set   func(o *Options, text string) error
}

var flags = [...]option{
	{
		name:  "kubeconfig",
		usage: "`file` that says how to reach the cluster (default: $KUBECONFIG, then in-cluster, then ~/.kube/config)",
		get:   func(o *Options) string { return o.Kubeconfig },
		set:   func(o *Options, text string) error { o.Kubeconfig = text; return nil },
	}, {
		name:  "context",
		usage: "`name` of the kubeconfig's context (default: its current one)",
		get:   func(o *Options) string { return o.Context },
		set:   func(o *Options, text string) error { o.Context = text; return nil },
	}, {
		name:  "as",
		usage: "`user` to make all requests as, such as system:serviceaccount:prod:website, to see whether its rights suffice (default: nobody else)",
		get:   func(o *Options) string { return o.Impersonate.UserName },
		set:   func(o *Options, text string) error { o.Impersonate.UserName = text; return nil },
	}, {
		name:  "as-group",
		usage: "`groups` of that user, separated by commas (default: those the server gives it)",
		list:  true,
		get:   func(o *Options) string { return strings.Join(o.Impersonate.Groups, ",") },
		set: func(o *Options, text string) error {
			o.Impersonate.Groups = strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
			return nil
		},
	}, {
		name:  "user-agent",
		usage: "`text` that the server's audit log shows (default: the program's name and version)",
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
		usage: "`directory` with tls.crt and tls.key of the metrics (default: made in memory, trusted by nobody)",
		get:   func(o *Options) string { return o.MetricsServing.CertDir },
		set:   func(o *Options, text string) error { o.MetricsServing.CertDir = text; return nil },
	}, {
		name:  "metrics-guard",
		env:   "METRICS_GUARD",
		usage: "serve metrics only to those whom the API server lets get their path",
		bool:  true,
		get:   func(o *Options) string { return strconv.FormatBool(o.MetricsServing.Guard) },
		set: func(o *Options, text string) (err error) {
			o.MetricsServing.Guard, err = strconv.ParseBool(text)
			return err
		},
	}, {
		name:  "profiling",
		usage: "serve profiles under /debug/pprof/ beside the metrics",
		bool:  true,
		get:   func(o *Options) string { return strconv.FormatBool(o.MetricsServing.Profiling) },
		set: func(o *Options, text string) (err error) {
			o.MetricsServing.Profiling, err = strconv.ParseBool(text)
			return err
		},
	}, {
		name:  "health-probe-bind-address",
		env:   "HEALTH_PROBE_BIND_ADDRESS",
		usage: "`address` to serve health and readiness on; 0: none",
		get:   func(o *Options) string { return cmp.Or(o.HealthAddress, defaultHealthAddress) },
		set:   func(o *Options, text string) error { o.HealthAddress = text; return nil },
	}, {
		name:  "allowed-hosts",
		env:   "ALLOWED_HOSTS",
		usage: "further `hosts` that servers on loopback answer for, separated by commas; *: any (default: localhost and loopback addresses)",
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
		usage: "`directory` with tls.crt and tls.key of the webhooks",
		get:   func(o *Options) string { return cmp.Or(o.Webhooks.CertDir, webhook.DefaultCertDir()) },
		set:   func(o *Options, text string) error { o.Webhooks.CertDir = text; return nil },
	}, {
		name:  "webhook-drain-delay",
		env:   "WEBHOOK_DRAIN_DELAY",
		usage: "`time` that webhooks go on answering after a stop has begun, below 0 for none",
		get:   func(o *Options) string { return cmp.Or(o.Webhooks.DrainDelay, webhook.DefaultDrainDelay).String() },
		set:   func(o *Options, text string) error { return setTime(&o.Webhooks.DrainDelay, text) },
	}, {
		name:  "watch-namespaces",
		env:   "WATCH_NAMESPACE",
		usage: "`namespaces` to watch, separated by commas (default: all)",
		list:  true,
		get:   func(o *Options) string { return strings.Join(o.Informers.Namespaces, ",") },
		set: func(o *Options, text string) error {
			o.Informers.Namespaces = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
			return nil
		},
	}, {
		name:  "leader-elect",
		env:   "LEADER_ELECT",
		usage: "have one of several replicas do the work",
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
		usage: "`name` of the Lease by which replicas agree (default: none)",
		get:   func(o *Options) string { return o.election().ID },
		set: func(o *Options, text string) error {
			o.elect(func(e *LeaderElection) { e.ID = text })
			return nil
		},
	}, {
		name:  "leader-election-namespace",
		env:   "LEADER_ELECTION_NAMESPACE",
		usage: "`namespace` of that Lease (default: the pod's)",
		get:   func(o *Options) string { return o.election().Namespace },
		set: func(o *Options, text string) error {
			o.elect(func(e *LeaderElection) { e.Namespace = text })
			return nil
		},
	},
	electionTime("leader-elect-lease-duration", "LEADER_ELECT_LEASE_DURATION", "`time` after the leader's last sign of life when another replica may take over",
		defaultLeaseDuration, func(e *LeaderElection) *time.Duration { return &e.LeaseDuration }),
	electionTime("leader-elect-renew-deadline", "LEADER_ELECT_RENEW_DEADLINE", "`time` for which the leader tries to renew before it gives up (default: two thirds of the lease's duration)",
		0, func(e *LeaderElection) *time.Duration { return &e.RenewDeadline }),
	electionTime("leader-elect-retry-period", "LEADER_ELECT_RETRY_PERIOD", "`time` between two renewals (default: a fifth of the renew deadline)",
		0, func(e *LeaderElection) *time.Duration { return &e.RetryPeriod }),
	{
		name:  "graceful-shutdown-timeout",
		env:   "GRACEFUL_SHUTDOWN_TIMEOUT",
		usage: "`time` that stopping may take",
		get:   func(o *Options) string { return cmp.Or(o.GracePeriod, defaultGracePeriod).String() },
		set:   func(o *Options, text string) error { return setTime(&o.GracePeriod, text) },
	}, {
		name:  "stuck-after",
		env:   "STUCK_AFTER",
		usage: "`time` that something may stand still while work waits for it before /livez fails, below 0 for ever",
		get:   func(o *Options) string { return cmp.Or(o.StuckAfter, health.DefaultStuckAfter).String() },
		set:   func(o *Options, text string) error { return setTime(&o.StuckAfter, text) },
	}, {
		name:  "log-format",
		env:   "LOG_FORMAT",
		usage: "`form` of the log, text or json, unless the program has a logger of its own",
		get:   func(o *Options) string { return cmp.Or(o.LogFormat, "text") },
		set:   func(o *Options, text string) error { o.LogFormat = text; return nil },
	}, {
		name:  "log-level",
		env:   "LOG_LEVEL",
		usage: "least `level` that the log shows: error, warn, info, debug or trace, unless the program has a logger of its own",
		get:   func(o *Options) string { return cmp.Or(o.LogLevel, "info") },
		set:   func(o *Options, text string) error { o.LogLevel = text; return nil },
	}, {
		name:  "v",
		usage: "`level` of detail of the log, unless the program has a logger of its own",
		get:   func(o *Options) string { return strconv.Itoa(o.Verbosity) },
		set: func(o *Options, text string) (err error) {
			o.Verbosity, err = strconv.Atoi(text)
			return err
		},
	},
}

// electionTime is one of the durations of an election. Its default is 0 where it
// follows from another.
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

// election is what o says of leader election so far; what is named there takes part
// only when -leader-elect says so.
func (o *Options) election() LeaderElection {
	if o.LeaderElection == nil {
		return LeaderElection{Off: true}
	}
	return *o.LeaderElection
}

// elect changes a copy: what the program gave stays its own.
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
//	-watch-namespaces
//	-leader-elect, -leader-election-id, -leader-election-namespace
//	-leader-elect-lease-duration, -leader-elect-renew-deadline, -leader-elect-retry-period
//	-graceful-shutdown-timeout, -stuck-after, -log-format, -log-level, -v
//	-config, a file with values of flags
//
// The default of most can be given by an environment variable, which has the flag's name
// in capitals, such as METRICS_BIND_ADDRESS; -help names it. That of -watch-namespaces is
// WATCH_NAMESPACE. -kubeconfig, -context, -as, -as-group, -user-agent, -profiling and -v
// have none: those names are too short, or mean something else to other programs.
//
// A flag wins over its variable, a variable over the file, the file over what o
// says already. A flag of that name that fs has already (another library's
// -kubeconfig) is shared: its value counts when it is not empty. A variable that
// does not parse is remembered; New returns it. o must not be copied between
// BindFlags and the parsing of fs.
//
// The file of -config is a YAML mapping of the names of flags to their values; those
// that take commas may be lists. It sets every flag that fs has when it is parsed,
// those of the program among them (one that gathers the values of several uses gets
// that of the file as one more). It is read where -config stands on the command line,
// and what is wrong with it is an error of fs.Parse; then nothing of it counts. A
// -config that fs has before BindFlags is the program's own, and no file is read.
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
		fs.Var(configFile{o, fs}, configFlag, "YAML `file` of these flags and their values, which count where neither a flag nor a variable says otherwise (default: none)")
	}
}

// decide has the file of -config change that flag no more.
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

// readBorrowed takes over the flags that somebody else has defined.
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

// flagValue is one field of o for package flag.
type flagValue struct {
	o   *Options
	row option
}

// String is called on the zero flagValue, too.
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

// IsBoolFlag has package flag take -name for -name=true.
func (v flagValue) IsBoolFlag() bool { return v.row.bool }
