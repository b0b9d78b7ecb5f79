// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/health"
	"github.com/flyball-dev/flyball/internal/ownership"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/manager/internal/crdinstall"
	"github.com/flyball-dev/flyball/resource/builtin"
	"github.com/flyball-dev/flyball/webhook"
)

const (
	defaultMetricsAddress = "127.0.0.1:8080"
	loopbackHealthAddress = "127.0.0.1:8081"
	podHealthAddress      = ":8081" // the kubelet connects from outside the Pod
	defaultGracePeriod    = 30 * time.Second

	off = "0" // as an address
)

// Options of a Manager. The zero value is fit for production.
type Options struct {
	// Scheme of the kinds with Go types. Nil: the built-in kinds of package
	// resource/builtin.
	Scheme *runtime.Scheme
	// Config of the connection; it is copied. Nil: the configuration that kubectl would
	// use, see FindConfig.
	Config *rest.Config
	// Kubeconfig is a file to read instead of the default places. Empty: those.
	Kubeconfig string
	// Context of the kubeconfig. Empty: its current one.
	Context string
	// UserAgent in the server's audit log. Empty: that of Config, or else the program's
	// name and version.
	UserAgent string
	// Impersonate makes all requests as another user, such as a ServiceAccount whose
	// permissions you want to test. The user of the connection needs permission to
	// impersonate. Zero: as in Config. Other fields without a UserName are misuse.
	Impersonate rest.ImpersonationConfig
	// Informers configures the manager's factory. A zero Logger there means the
	// manager's.
	Informers informer.Options
	// Client configures the manager's clients. A nil Observer there means the manager's
	// factory, so that Listers show own writes at once; a zero Logger means the
	// manager's.
	Client client.Options
	// MetricsAddress to serve /metrics on. Empty: 127.0.0.1:8080, which is not
	// reachable from outside the Pod. "0": none. ":0": any free port.
	MetricsAddress string
	// MetricsServing configures access to the metrics. Zero: plain HTTP for everyone
	// who can reach the address.
	MetricsServing Serving
	// MetricsScopes bounds how many scopes of a kind have their own series in the
	// metrics: those that have been in trouble for the longest. All others are counted
	// by kind and state. Zero: 20. Negative: every scope has series, in trouble or not,
	// so that users who create selected namespaces determine the number of series.
	MetricsScopes int
	// HealthAddress to serve /livez, /readyz and /healthz on. Empty: ":8081" in a Pod,
	// because the kubelet connects from outside, and 127.0.0.1:8081 elsewhere; the log
	// says so. A Pod is detected by KUBERNETES_SERVICE_HOST and
	// KUBERNETES_SERVICE_PORT. "0" and ":0" as above.
	HealthAddress string
	// AllowedHosts are further host names, without ports, for which servers on loopback
	// answer. Without them, the metrics and health servers there answer only requests
	// whose Host is localhost, a loopback address or the host of their own address.
	// That protects against DNS rebinding by web pages. A proxy in the same Pod that
	// keeps the Host header needs its own names here. "*" allows all.
	AllowedHosts []string
	// StuckAfter is how long a part may make no progress while work waits for it before
	// /livez fails and the kubelet restarts the process. Parts are a handler with its
	// mappers and predicates, an informer's store and transform, all workers of a
	// controller, and the elector. Workers make progress when a reconcile begins or
	// ends, and with each request of a reconcile through the manager's configuration. A
	// controller with a longer HardDeadline has that and one minute more; one without a
	// hard deadline is never stuck. The flag -stuck-after sets it. 0: 2 minutes.
	// Negative: no limit; a reconcile that ignores its context still fails /livez a
	// minute after its hard deadline.
	StuckAfter time.Duration
	// ReadyWhenSaturated excludes the checks saturation:CONTROLLER from /readyz. They
	// fail when all workers have made no progress for half of StuckAfter while keys
	// wait, and then the Pod's webhooks get no requests.
	ReadyWhenSaturated bool
	// Webhooks configures the manager's webhook server, if it is used. An empty
	// Namespace of Managed there means the Pod's own, as for LeaderElection. DrainDelay
	// counts from the start of the stop and is part of GracePeriod.
	Webhooks webhook.Options
	// LeaderElection makes only one of several replicas reconcile. Nil: all do.
	LeaderElection *LeaderElection
	// Sharding divides the objects among several Deployments of the program. Nil: the
	// process acts on all objects.
	Sharding *Sharding
	// InstallCRDs has YAML or JSON files with CustomResourceDefinitions, at any depth, such
	// as an embed.FS. Run creates or updates them on every replica before the informers
	// start, and waits until they are established. An update that would take something
	// from clients or stored objects is an error of Run, and a newer one on the server
	// stays; see docs/kinds.md. The program needs the verbs get, create and update of
	// customresourcedefinitions. Nil: none.
	InstallCRDs fs.FS
	// KeepCRDs leaves the CustomResourceDefinitions of InstallCRDs to others. The flag
	// -install-crds=false sets it.
	KeepCRDs bool
	// TracerProvider creates spans of events, of the time in the queue, of reconciles
	// and of their requests; see reconcile.Options.TracerProvider. Nil: none, at no
	// cost. The program flushes it after Run has returned.
	TracerProvider trace.TracerProvider
	// Propagator writes the span into the headers of those requests, for an API server
	// with tracing. Nil: none.
	Propagator propagation.TextMapPropagator
	// Record keeps recordings of what the program does, for replays. Zero: none.
	Record Record
	// GracePeriod bounds the stop of all stages together. When it has passed, all
	// contexts end at once, and a second later Run returns and names what still runs.
	// 0: 30 seconds, the default of a Pod.
	GracePeriod time.Duration
	// Logger of the manager and of everything it runs, including client-go. Zero: text
	// lines on stderr. logr.Discard() is the zero Logger too; for silence use
	// logr.FromSlogHandler(slog.DiscardHandler), for JSON that of slog.NewJSONHandler.
	Logger logr.Logger
	// Verbosity of the zero Logger: it shows V(n) for n up to it.
	Verbosity int
	// LogFormat of the zero Logger: "text", or "json", one object per line with time,
	// level, msg and the values. Empty: "text".
	LogFormat string
	// LogLevel is the least level that the zero Logger shows: "error", "warn", "info",
	// "debug", which is V(1) to V(4), or "trace", everything above. Empty: "info", and
	// what Verbosity adds. Problems that may resolve without a change, or need
	// attention (a missing permission, a server that does not answer), are "warn": a
	// warning for a Logger of log/slog, an error for any other.
	LogLevel string

	probesForKubelet bool                         // in a Pod, without HealthAddress
	crds             []*unstructured.Unstructured // of InstallCRDs

	misuse   []error               // from BindFlags
	borrowed map[string]*flag.Flag // flags that other packages have defined
	decided  map[string]bool       // flags set by a variable or the command line
	config   string                // the file that was read
}

func impersonationMisuse(as rest.ImpersonationConfig) error {
	if as.UserName == "" && (as.UID != "" || len(as.Groups) > 0 || len(as.Extra) > 0) {
		return errors.New("no UserName to impersonate is set, which servers require with groups, extra and UID; give -as too")
	}
	return nil
}

// complete sets the defaults and returns an error for misuse.
func (o *Options) complete() error {
	misuse := append(o.misuse, o.readBorrowed())
	o.MetricsAddress = cmp.Or(o.MetricsAddress, defaultMetricsAddress)
	o.probesForKubelet = o.HealthAddress == "" && inPod()
	o.HealthAddress = cmp.Or(o.HealthAddress, defaultHealthAddress())
	misuse = append(misuse, checkAddress("MetricsAddress", o.MetricsAddress), checkAddress("HealthAddress", o.HealthAddress),
		o.MetricsServing.misuse(o.MetricsAddress))
	if o.MetricsAddress == o.HealthAddress && !anyPort(o.MetricsAddress) {
		misuse = append(misuse, fmt.Errorf("MetricsAddress and HealthAddress are both %q; give each its own port", o.MetricsAddress))
	}
	if o.GracePeriod < 0 {
		misuse = append(misuse, fmt.Errorf("GracePeriod is %v; give a time above zero, or 0 for %v", o.GracePeriod, defaultGracePeriod))
	}
	o.GracePeriod = cmp.Or(o.GracePeriod, defaultGracePeriod)
	o.StuckAfter = cmp.Or(o.StuckAfter, health.DefaultStuckAfter)
	misuse = append(misuse, impersonationMisuse(o.Impersonate))
	if o.LeaderElection != nil && o.LeaderElection.Off {
		o.LeaderElection = nil
	}
	if o.Scheme == nil {
		o.Scheme = runtime.NewScheme()
		misuse = append(misuse, builtin.AddToScheme(o.Scheme))
	}
	misuse = append(misuse, o.shard())
	if o.LeaderElection != nil {
		complete, err := o.LeaderElection.complete()
		o.LeaderElection = &complete
		misuse = append(misuse, err)
	}
	if m := o.Webhooks.Managed; m != nil && m.Namespace == "" {
		managed := *m
		managed.Namespace = ownership.PodNamespace()
		o.Webhooks.Managed = &managed
	}
	misuse = append(misuse, drainMisuse(o.Webhooks.DrainDelay, o.GracePeriod), o.readCRDs(), o.Record.misuse())
	if o.Logger.IsZero() {
		form, err := o.form()
		misuse = append(misuse, err)
		o.Logger = form.Logger(os.Stderr)
	}
	o.Logger = textlog.Guard(o.Logger) // one throttle for all parts
	if o.Informers.Logger.IsZero() {
		o.Informers.Logger = o.Logger
	}
	if o.Client.Logger.IsZero() {
		o.Client.Logger = o.Logger
	}
	return errors.Join(misuse...)
}

// readCRDs reads InstallCRDs, also if they are kept, so that a wrong file is noticed.
func (o *Options) readCRDs() error {
	if o.InstallCRDs == nil {
		return nil
	}
	crds, err := crdinstall.Read(o.InstallCRDs)
	if err != nil {
		return fmt.Errorf("read InstallCRDs: %w", err)
	}
	if !o.KeepCRDs {
		o.crds = crds
	}
	return nil
}

// form returns the format of the zero Logger.
func (o *Options) form() (textlog.Form, error) {
	form := textlog.Form{Verbosity: o.Verbosity, JSON: o.LogFormat == "json"}
	var wrong []error
	if o.LogFormat != "" && o.LogFormat != "text" && o.LogFormat != "json" {
		wrong = append(wrong, fmt.Errorf("LogFormat is %q; give \"text\" or \"json\" (-log-format)", o.LogFormat))
	}
	if o.LogLevel != "" {
		level, err := textlog.ParseLevel(o.LogLevel)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("LogLevel: %w (-log-level)", err))
		}
		form.Least = level
	}
	return form, errors.Join(wrong...)
}

// drainMisuse returns why a drain delay of webhooks does not fit into a grace period.
func drainMisuse(delay, grace time.Duration) error {
	if delay < grace {
		return nil
	}
	return fmt.Errorf("Webhooks.DrainDelay is %v and GracePeriod %v, which it is a part of; make the first shorter, "+
		"or the second (-graceful-shutdown-timeout) longer", delay, grace)
}

func checkAddress(field, address string) error {
	if address == off {
		return nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%s %q: %w; write \"host:port\", \":port\" for all interfaces, or \"0\" for none", field, address, err)
	}
	return nil
}

// anyPort reports whether two servers may have this address.
func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err != nil || port == "0"
}
