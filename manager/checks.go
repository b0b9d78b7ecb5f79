// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// patience is how long a reconcile may go on after its context was cancelled at
// the hard deadline, before its worker counts as lost.
const patience = time.Minute

// The stacks that an answer shows, so that a kubelet's event has room for their heads.
const (
	mostStacks   = 4       // of one controller, and of all informers
	longestStack = 4 << 10 // bytes of each
)

// answered is a check whose answer is known already.
func answered(name string, err error) check {
	return check{name: name, ask: func(context.Context) error { return err }}
}

// readyChecks are what ready means: it runs, and everything is synced.
func (m *Manager) readyChecks() []check {
	checks := []check{answered("ping", nil), answered("shutdown", m.stopping())}
	hooks := m.webhookServer()
	converted := func(kind schema.GroupKind) bool { return hooks != nil && hooks.Converts(kind) }
	checks = append(checks, informerChecks(m.allInformers(), converted)...)
	for _, g := range m.groups {
		for _, r := range g.snapshot() {
			c, ok := syncCheck(r, converted)
			if !ok {
				continue
			}
			if m.elector != nil && g.stage == StageControllers && r.waits() {
				c.passing = "it waits to lead"
			}
			checks = append(checks, c)
			if c, ok := r.runnable.(controller); ok {
				checks = append(checks, m.saturationCheck(c, c.Snapshot()))
			}
		}
	}
	if hooks != nil {
		checks = append(checks, check{name: "webhooks", ask: hooks.Check})
		if untold := hooks.Snapshot().Untold; len(untold) > 0 {
			c := answered("webhooks/untold", errors.Join(untold...))
			c.passing = "the others are served"
			checks = append(checks, c)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(checks, m.mu.ready...)
}

func (m *Manager) stopping() error {
	phase, since := m.phase()
	if phase == PhaseStopping || phase == PhaseStopped {
		return fmt.Errorf("the manager is %s since %s", phase, since.Format(time.RFC3339))
	}
	return nil
}

// convertedHere is why what waits for a kind does not count: nobody asks a process
// that is not ready to convert it, so it would wait for itself.
const convertedHere = "this process converts what it waits for"

// informerChecks are one check per kind; several informers of a kind share it.
func informerChecks(informers []informer.Snapshot, converted func(schema.GroupKind) bool) []check {
	var names []string
	passing := map[string]string{}
	reasons := map[string][]string{}
	for _, i := range informers {
		name := "informer/" + i.Kind.GroupKind().String()
		if !slices.Contains(names, name) {
			names = append(names, name)
			if converted(i.Kind.GroupKind()) {
				passing[name] = convertedHere
			}
		}
		reasons[name] = append(reasons[name], unsynced(i)...)
	}
	var checks []check
	for _, name := range names {
		var err error
		if len(reasons[name]) > 0 {
			err = errors.New("not synced " + strings.Join(reasons[name], "; "))
		}
		c := answered(name, err)
		c.passing = passing[name]
		checks = append(checks, c)
	}
	return checks
}

// unsynced says of each scope of i that has not synced where it stands, since
// when and why.
func unsynced(i informer.Snapshot) []string {
	var out []string
	for _, s := range i.Scopes {
		if !s.Synced {
			out = append(out, s.String())
		}
	}
	if len(out) == 0 && !i.Synced {
		out = append(out, "yet")
	}
	return out
}

// waits reports whether r has not been run at all, not to stand by either.
func (r member) waits() bool {
	_, prepares := r.runnable.(standby)
	return r.state == RunWaiting && !prepares
}

// syncCheck is the check of a Runnable that says when it has synced. An
// informer has its own.
func syncCheck(r member, converted func(schema.GroupKind) bool) (check, bool) {
	s, ok := r.runnable.(syncable)
	if _, isInformer := r.runnable.(lonelyInformer); !ok || isInformer {
		return check{}, false
	}
	c, isController := r.runnable.(controller)
	name := "sync/" + r.name
	if isController {
		name = "controller/" + c.Snapshot().Name
	}
	select {
	case <-s.Synced():
		return answered(name, nil), true
	default:
	}
	err := fmt.Errorf("not synced: %s since %s", r.state, r.since.Format(time.RFC3339))
	if !isController {
		return answered(name, err), true
	}
	waits := behind(c.Snapshot())
	var names []string
	for _, source := range waits {
		names = append(names, source.Source)
	}
	if len(names) > 0 {
		err = fmt.Errorf("%w, waits for %s", err, strings.Join(names, ", "))
	}
	out := answered(name, err)
	if len(waits) > 0 && !slices.ContainsFunc(waits, func(s source.Snapshot) bool { return !converted(s.Kind) }) {
		out.passing = convertedHere
	}
	return out, true
}

// behind are the sources that s waits for.
func behind(s reconcile.Snapshot) []source.Snapshot {
	return slices.DeleteFunc(slices.Clone(s.Sources), func(s source.Snapshot) bool { return s.Synced || s.Optional })
}

// liveChecks are what alive means: what must progress does, and no worker is lost.
func (m *Manager) liveChecks() []check {
	checks := append([]check{answered("ping", nil)}, m.progressChecks()...)
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(checks, m.mu.live...)
}

// lostText says of reconciles of a controller that they ignore their cancelled
// context, and where they are.
func lostText(s reconcile.Snapshot, lost []reconcile.Running, stacks map[string]string) string {
	return fmt.Sprintf("%d of %d workers are lost: the reconcile ignores its context, cancelled at the hard deadline of %v: %s",
		len(lost), s.Workers, s.HardDeadline, describe(lost, stacks))
}

// stacksOf are those of the reconciles of c that have begun before a time, by their IDs.
func stacksOf(c controller, before time.Time) map[string]string {
	if asked, ok := c.(stacked); ok {
		return asked.Stacks(before)
	}
	return nil
}

func cut(stack string) string { return stack[:min(len(stack), longestStack)] }

// describe lists reconciles, the first with their stacks.
func describe(running []reconcile.Running, stacks map[string]string) string {
	var all []string
	for _, r := range running {
		text := fmt.Sprintf("%s (reconcileID %s, since %s)", r.Key, r.ID, r.Since.Format(time.RFC3339))
		if stack := stacks[r.ID]; stack != "" && len(all) < mostStacks {
			text += "\n" + cut(stack) + "\n"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}
