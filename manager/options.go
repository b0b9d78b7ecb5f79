// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/manager/internal/health"
	"github.com/flyball-dev/flyball/webhook"
)

const (
	defaultMetricsAddress = "127.0.0.1:8080"
	loopbackHealthAddress = "127.0.0.1:8081"
	podHealthAddress      = ":8081" // the kubelet asks from outside of the Pod
	defaultGracePeriod    = 30 * time.Second

	off = "0" // as an address
)

// Options of a Manager. The zero value is fit for production.
type Options struct {
	// Scheme of the kinds that have Go types. Nil: client-go's, with the
	// built-in kinds and whatever the program has added to it.
	Scheme *runtime.Scheme
	// Config of the connection, copied. Nil: found as kubectl does, see
	// FindConfig.
	Config *rest.Config
	// Kubeconfig is a file to read instead of the usual places. Empty: those.
	Kubeconfig string
	// Context of the kubeconfig. Empty: its current one.
	Context string
	// UserAgent that the server's audit log shows. Empty: that of Config, or else
	// one made of the program's name and version.
	UserAgent string
	// Impersonate has all requests made as somebody else, whom the server decides
	// for: a ServiceAccount, to find out whether its rights suffice. The user of
	// the connection needs the right to impersonate. Zero: as Config says. Without a
	// UserName the rest is misuse.
	Impersonate rest.ImpersonationConfig
	// Informers that the manager's factory makes. A zero Logger there is the
	// manager's.
	Informers informer.Options
	// Client of the manager. A nil Observer there is the manager's factory, so
	// that Listers show own writes at once; a zero Logger is the manager's.
	Client client.Options
	// MetricsAddress to serve /metrics on. Empty: 127.0.0.1:8080, which nobody
	// outside the pod reaches. "0": none. ":0": any free port.
	MetricsAddress string
	// MetricsServing says who may read the metrics, and over what. Zero: everybody who
	// reaches the address, over plain HTTP.
	MetricsServing Serving
	// MetricsScopes bounds for how many scopes of a kind the metrics have series of
	// their own: those that have been in trouble for the longest. All others are
	// counted by kind and state. Zero: 20. Negative: every scope has series, in
	// trouble or not; whoever creates namespaces that a selector chooses then
	// decides on the number of series.
	MetricsScopes int
	// HealthAddress to serve /livez, /readyz and /healthz on. Empty: ":8081" in a Pod, where
	// the kubelet asks from outside, and 127.0.0.1:8081 elsewhere; the log says so. A Pod is
	// where KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are set. "0" and ":0" as
	// above.
	HealthAddress string
	// AllowedHosts are further names by which servers on loopback may be asked, without
	// ports: those of metrics and health answer there only requests whose Host is
	// localhost, a loopback address or the host of their own address, so that a page in
	// a browser cannot read them by a name that it resolves to loopback. A proxy in the
	// same Pod that keeps the Host header needs its own names here. "*" allows all.
	AllowedHosts []string
	// StuckAfter is how long something may stand still while work waits for it before
	// /livez fails and the kubelet restarts the process: a handler with its mappers and
	// predicates, an informer's store and its transform, all workers of a controller, the
	// elector. Of workers a reconcile that begins or ends counts as a move, and so does
	// each request that a reconcile makes by the manager's configuration. A controller
	// whose own HardDeadline is longer has that and a minute more; one without a hard
	// deadline is never stuck. The flag -stuck-after sets it. 0: 2 minutes. Negative: for ever; a reconcile that
	// ignores its context still counts a minute after its hard deadline.
	StuckAfter time.Duration
	// ReadyWhenSaturated has the checks saturation:CONTROLLER of /readyz not count. They
	// fail when all workers have stood still for half of StuckAfter while keys wait, and
	// with them the pod's webhooks get no requests.
	ReadyWhenSaturated bool
	// Webhooks of the manager, for those who ask for its Webhooks. An empty Namespace of
	// Managed there is the pod's own, as LeaderElection says. DrainDelay counts from the
	// beginning of the stop and is part of GracePeriod.
	Webhooks webhook.Options
	// LeaderElection has one of several replicas do the work. Nil: each does.
	LeaderElection *LeaderElection
	// TracerProvider has spans of events, of the time in the queue, of reconciles and
	// of the requests that they make; see reconcile.Options.TracerProvider. Nil: none, at no
	// cost. The program flushes it after Run has returned.
	TracerProvider trace.TracerProvider
	// Propagator writes the span into the headers of those requests, for an API server
	// that traces, too. Nil: nothing is written.
	Propagator propagation.TextMapPropagator
	// GracePeriod that all stages together have to stop. When it has passed, the
	// contexts of all end at once, and a second later Run returns and names what
	// still runs. 0: 30 seconds, the time that a pod has by default.
	GracePeriod time.Duration
	// Logger of the manager and of what it runs, client-go included. Zero: lines
	// of text on stderr. logr.Discard() is the zero Logger too; for silence give
	// logr.FromSlogHandler(slog.DiscardHandler), for JSON that of
	// slog.NewJSONHandler.
	Logger logr.Logger
	// Verbosity of the zero Logger: V(n) is shown for n up to it.
	Verbosity int
	// LogFormat of the zero Logger: "text" for people, or "json", an object on a line
	// with time, level, msg and the values. Empty: "text".
	LogFormat string
	// LogLevel is the least level that the zero Logger shows: "error", "warn", "info",
	// "debug", which is V(1) to V(4), or "trace", all beyond. Empty: "info", and what
	// Verbosity adds. Trouble that may pass by itself or is for somebody to look at
	// (a right that is missing, a server that does not answer) is "warn", and logged
	// as a warning by a Logger of log/slog, as an error by any other.
	LogLevel string

	probesForKubelet bool // HealthAddress was left out, in a Pod

	misuse   []error               // of BindFlags
	borrowed map[string]*flag.Flag // flags that another package has defined
	decided  map[string]bool       // flags of which a variable or the command line has said something
	config   string                // the file that has been read
}

// complete fills in what has been left out and returns the misuse it finds.
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
	if as := o.Impersonate; as.UserName == "" && (as.UID != "" || len(as.Groups) > 0 || len(as.Extra) > 0) {
		misuse = append(misuse, errors.New("no UserName is given to Impersonate, and without it no server takes the groups, extra and UID that are; give -as too"))
	}
	if o.LeaderElection != nil && o.LeaderElection.Off {
		o.LeaderElection = nil
	}
	if o.LeaderElection != nil {
		complete, err := o.LeaderElection.complete()
		o.LeaderElection = &complete
		misuse = append(misuse, err)
	}
	if m := o.Webhooks.Managed; m != nil && m.Namespace == "" {
		managed := *m
		managed.Namespace = ownNamespace()
		o.Webhooks.Managed = &managed
	}
	misuse = append(misuse, drainMisuse(o.Webhooks.DrainDelay, o.GracePeriod))
	if o.Scheme == nil {
		o.Scheme = clientgoscheme.Scheme
	}
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

// form is that of the zero Logger.
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

// drainMisuse says why a drain delay of webhooks does not fit into a grace period.
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

// anyPort reports whether two servers can be given the same address.
func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err != nil || port == "0"
}
