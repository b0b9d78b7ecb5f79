// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/internal/ownership"
	"github.com/flyball-dev/flyball/internal/writegate"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager/internal/election"
	"github.com/flyball-dev/flyball/reconcile"
)

const (
	defaultLeaseDuration = 15 * time.Second
	shortestRetryPeriod  = 10 * time.Millisecond
)

// LeaderElection configures the Lease by which replicas elect a leader. The zero value
// of each field but ID is fit for production.
type LeaderElection struct {
	// ID is the name of the Lease. All replicas of a program use the same, and no other
	// program does.
	ID string
	// Namespace of the Lease. Empty: the Pod's own, from POD_NAMESPACE or the mounted
	// token of the service account; required outside a Pod.
	Namespace string
	// Identity names this process in the Lease. A random suffix makes it unique. Empty:
	// the host name.
	Identity string
	// LeaseDuration is how long after the leader's last renewal another replica may
	// take over: whole seconds, as the Lease stores them. The gate refuses writes after
	// nine tenths of it. 0: 15 seconds.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader tries to renew before it ends. It is less
	// than LeaseDuration. 0: two thirds of LeaseDuration.
	RenewDeadline time.Duration
	// RetryPeriod is the time between renewals, and the least time between reads of a
	// standby, which also watches the Lease. RenewDeadline must be more than 1.2 times
	// as long. 0: a fifth of RenewDeadline.
	RetryPeriod time.Duration
	// Off disables the election and keeps the other fields, so that the flag
	// -leader-elect can enable it.
	Off bool
}

// complete returns a copy with defaults, or an error for misuse.
func (e LeaderElection) complete() (LeaderElection, error) {
	var misuse []error
	e.LeaseDuration = cmp.Or(e.LeaseDuration, defaultLeaseDuration)
	e.RenewDeadline = cmp.Or(e.RenewDeadline, e.LeaseDuration*2/3)
	e.RetryPeriod = cmp.Or(e.RetryPeriod, e.RenewDeadline/5)
	if e.Namespace == "" {
		e.Namespace = ownership.PodNamespace()
	}
	switch {
	case e.ID == "":
		misuse = append(misuse, errors.New("ID is not set; name the Lease, such as manager.LeaderElection{ID: \"website\"}, or give -leader-election-id"))
	default:
		misuse = append(misuse, valid("ID", e.ID, validation.IsDNS1123Subdomain(e.ID)))
	}
	switch {
	case e.Namespace == "":
		misuse = append(misuse, errors.New("no Namespace is set, and this process does not run in a Pod; name the Lease's, give -leader-election-namespace, or set POD_NAMESPACE"))
	default:
		misuse = append(misuse, valid("Namespace", e.Namespace, validation.IsDNS1123Label(e.Namespace)))
	}
	misuse = append(misuse, e.checkDurations())
	if err := errors.Join(misuse...); err != nil {
		return e, fmt.Errorf("LeaderElection: %w", err)
	}
	return e, nil
}

func valid(field, value string, complaints []string) error {
	if len(complaints) == 0 {
		return nil
	}
	return fmt.Errorf("%s %q: %s", field, value, strings.Join(complaints, "; "))
}

// checkDurations returns an error for durations that the elector would refuse, that the
// Lease cannot hold, or that would load the server too much.
func (e LeaderElection) checkDurations() error {
	least := time.Duration(float64(e.RetryPeriod) * election.JitterFactor)
	switch {
	case e.LeaseDuration < time.Second || e.LeaseDuration%time.Second != 0:
		return fmt.Errorf("LeaseDuration is %v; a Lease holds whole seconds, so write %v",
			e.LeaseDuration, max(e.LeaseDuration.Round(time.Second), time.Second))
	case e.RenewDeadline <= 0 || e.RenewDeadline >= e.LeaseDuration:
		return fmt.Errorf("RenewDeadline is %v and LeaseDuration %v: the leader must stop before another replica may take over; write %v, or leave it out",
			e.RenewDeadline, e.LeaseDuration, e.LeaseDuration*2/3)
	case e.RetryPeriod < shortestRetryPeriod:
		return fmt.Errorf("RetryPeriod is %v: each replica asks the server that often; write %v or more, or leave it out", e.RetryPeriod, shortestRetryPeriod)
	case e.RenewDeadline <= least:
		return fmt.Errorf("RetryPeriod is %v and RenewDeadline %v: with its jitter not even a second try fits in; write %v, or leave it out",
			e.RetryPeriod, e.RenewDeadline, e.RenewDeadline/5)
	}
	return nil
}

// elector returns the options of the elector.
func (e LeaderElection) elector() election.Options {
	return election.Options{
		Lease: kube.Key{Namespace: e.Namespace, Name: e.ID}, Identity: e.Identity,
		LeaseDuration: e.LeaseDuration, RenewDeadline: e.RenewDeadline, RetryPeriod: e.RetryPeriod,
	}
}

// ErrLeadershipLost is wrapped by the error of Run when this process led and another
// may lead now. All guarded work was cut off at once; the process should end and
// restart as a standby.
var ErrLeadershipLost = election.ErrLeadershipLost

// ErrGateLost is wrapped by the error of each request of a client whose configuration
// came from Manager.Config but has lost the gate of the leader election, because
// WrapTransport was replaced or rest.AnonymousClientConfig dropped it. Such a client
// could write while another process leads, so it gets no connection.
var ErrGateLost = writegate.ErrGateLost

// ErrNotLeading is reconcile.ErrNotLeading. With leader election it is wrapped by the
// error of each write through Client, or through a client made from Config, while this
// process does not lead.
var ErrNotLeading = reconcile.ErrNotLeading
