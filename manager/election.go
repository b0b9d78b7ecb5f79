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
	"k8s.io/client-go/tools/leaderelection"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/internal/election"
	"github.com/flyball-dev/flyball/reconcile"
)

const (
	defaultLeaseDuration = 15 * time.Second
	shortestRetryPeriod  = 10 * time.Millisecond
)

// LeaderElection says by which Lease the replicas of a program agree who does the
// work. The zero value of each field but ID is fit for production.
type LeaderElection struct {
	// ID is the name of the Lease. Programs that elect one of them share it, and no
	// other does.
	ID string
	// Namespace of the Lease. Empty: the pod's own, which POD_NAMESPACE or the mounted
	// token of its service account tells; elsewhere it must be named.
	Namespace string
	// Identity names this process in the Lease. A random part is added, so that two
	// processes of one Identity are two. Empty: the host's name.
	Identity string
	// LeaseDuration is how long after the leader's last sign of life another may
	// take over: whole seconds, since the Lease has no parts of one. The gate
	// refuses writes after nine tenths of it. 0: 15 seconds.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader tries to renew before it gives up. It
	// is below LeaseDuration. 0: two thirds of LeaseDuration.
	RenewDeadline time.Duration
	// RetryPeriod between two renewals, and at least between two looks of a standby,
	// which a watch of the Lease wakes besides. RenewDeadline is more than 1.2 times
	// as long. 0: a fifth of RenewDeadline.
	RetryPeriod time.Duration
	// Off leaves the election out: all else is named, and the flag -leader-elect
	// decides.
	Off bool
}

// complete is a copy with the defaults filled in, and the misuse of it.
func (e LeaderElection) complete() (LeaderElection, error) {
	var misuse []error
	e.LeaseDuration = cmp.Or(e.LeaseDuration, defaultLeaseDuration)
	e.RenewDeadline = cmp.Or(e.RenewDeadline, e.LeaseDuration*2/3)
	e.RetryPeriod = cmp.Or(e.RetryPeriod, e.RenewDeadline/5)
	if e.Namespace == "" {
		e.Namespace = ownNamespace()
	}
	switch {
	case e.ID == "":
		misuse = append(misuse, errors.New("ID is not set; name the Lease, such as manager.LeaderElection{ID: \"website\"}, or give -leader-election-id"))
	default:
		misuse = append(misuse, valid("ID", e.ID, validation.IsDNS1123Subdomain(e.ID)))
	}
	switch {
	case e.Namespace == "":
		misuse = append(misuse, errors.New("Namespace is not set, and this process does not run in a Pod; name the Lease's, give -leader-election-namespace, or set POD_NAMESPACE"))
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

// checkDurations says what the elector would refuse, what the Lease cannot hold, and
// what no server is to be asked.
func (e LeaderElection) checkDurations() error {
	least := time.Duration(float64(e.RetryPeriod) * leaderelection.JitterFactor)
	switch {
	case e.LeaseDuration < time.Second || e.LeaseDuration%time.Second != 0:
		return fmt.Errorf("LeaseDuration is %v; a Lease holds whole seconds, so write %v",
			e.LeaseDuration, max(e.LeaseDuration.Round(time.Second), time.Second))
	case e.RenewDeadline <= 0 || e.RenewDeadline >= e.LeaseDuration:
		return fmt.Errorf("RenewDeadline is %v and LeaseDuration %v: the leader must give up before another may take over; write %v, or leave it out",
			e.RenewDeadline, e.LeaseDuration, e.LeaseDuration*2/3)
	case e.RetryPeriod < shortestRetryPeriod:
		return fmt.Errorf("RetryPeriod is %v: each replica asks the server that often; write %v or more, or leave it out", e.RetryPeriod, shortestRetryPeriod)
	case e.RenewDeadline <= least:
		return fmt.Errorf("RetryPeriod is %v and RenewDeadline %v: with its jitter not even a second try fits in; write %v, or leave it out",
			e.RetryPeriod, e.RenewDeadline, e.RenewDeadline/5)
	}
	return nil
}

// elector is what elects as e says.
func (e LeaderElection) elector() election.Options {
	return election.Options{
		Lease: informer.Key{Namespace: e.Namespace, Name: e.ID}, Identity: e.Identity,
		LeaseDuration: e.LeaseDuration, RenewDeadline: e.RenewDeadline, RetryPeriod: e.RetryPeriod,
	}
}

// ErrLeadershipLost is in what Run returns when this process led and another may
// lead now. All that the lease guards was cut off at once; the process should end
// and be started anew, as a standby.
var ErrLeadershipLost = election.ErrLeadershipLost

// ErrGateLost is in the error of each request of a client whose configuration came from
// Manager.Config and has lost the gate of the leader election: WrapTransport was
// replaced, or rest.AnonymousClientConfig left it out. Such a client could write while
// another process leads, so it gets no connection.
var ErrGateLost = election.ErrGateLost

// ErrNotLeading is reconcile.ErrNotLeading: with leader election, it is in the error
// of each write that Client, or a client made of Config, was asked for while this
// process did not lead.
var ErrNotLeading = reconcile.ErrNotLeading
