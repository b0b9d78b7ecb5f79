// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"github.com/flyball-dev/flyball/internal/simhook"
)

// simulated draws random numbers from sim, if it is not nil.
func (r *Reflector) simulated(sim simhook.Hooks) {
	if r.sim = sim; sim != nil {
		name := "reflector " + r.Name()
		r.random = func() float64 { return sim.Random(name) }
	}
}

// Name identifies the Reflector within the process.
func (r *Reflector) Name() string {
	return r.kind.GroupKind().String() + " as " + r.Objects + " " + r.scope.String()
}

func (r *Reflector) reportEpoch() {
	if r.sim != nil {
		r.sim.Note(simhook.Note{What: simhook.Epoch, Kind: r.kind.GroupKind().String()})
	}
}
