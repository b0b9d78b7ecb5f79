// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// Sharing is how the replicas of a program share its objects, as this one sees it.
type Sharing struct {
	// Lease of the plan, as namespace/name.
	Lease string `json:"lease"`
	// Identity of this replica.
	Identity string `json:"identity"`
	// Plan is the number of shards and what divides objects, such as "32/uid".
	Plan string `json:"plan"`
	// LeaseSeconds is for how long a replica that has ended unexpectedly keeps its shards.
	LeaseSeconds float64 `json:"leaseSeconds"`
	// Waits is why this replica takes no shards; absent: it does.
	Waits string `json:"waits,omitempty"`
	// Refused counts writes that were refused because this replica could not trust that it holds the
	// shard.
	Refused uint64 `json:"refused"`
	// Replicas that live, by name; Shards by number; and the last Moves to this replica, the oldest
	// first.
	Replicas []Replica `json:"replicas"`
	Shards   []Shard   `json:"shards"`
	Moves    []Move    `json:"moves"`
}

// Replica is one process of a program.
type Replica struct {
	Name string `json:"name"`
	// Address of its console, as it has written it; absent: not known.
	Address string `json:"address,omitempty"`
	Weight  int    `json:"weight"`
	// Leaving: it gives its shards away and ends.
	Leaving bool   `json:"leaving,omitempty"`
	Plan    string `json:"plan"`
	// Shards is how many it holds.
	Shards int `json:"shards"`
	// Me: it gives this answer.
	Me bool `json:"me,omitempty"`
}

// Shard is one part of the objects.
type Shard struct {
	Shard int `json:"shard"`
	// Holder is the replica that holds it, and Next the one to which it is to move; absent: none.
	Holder string `json:"holder,omitempty"`
	Next   string `json:"next,omitempty"`
	// Stage on this replica: "claimed" (its informers catch up), "held", or "draining" (its reconciles
	// end before it moves); absent: it is elsewhere.
	Stage string `json:"stage,omitempty"`
	// Since is when this replica saw its last move, or began to drain it; absent: not known.
	Since time.Time `json:"since,omitzero"`
	// Keys in flight of a shard that drains, as "CONTROLLER KEY".
	Keys []string `json:"keys,omitempty"`
}

// Move is a shard that this replica has taken.
type Move struct {
	At    time.Time `json:"at"`
	Shard int       `json:"shard"`
	From  string    `json:"from,omitempty"`
	To    string    `json:"to"`
	// Reason is one of the Moved constants.
	Reason string `json:"reason"`
	// TookSeconds is how long the informers took to have what the replica before wrote.
	TookSeconds float64 `json:"tookSeconds"`
}

// Why a shard has moved.
const (
	MovedPlanned = "planned"       // the replica before has given it away
	MovedEnded   = "replica ended" // without giving it away
	MovedUnheld  = "nobody held it"
)

// ReasonOf returns why a shard has moved to this replica. Nobody holds a new shard, or one whose
// Lease was changed by hand.
func ReasonOf(from string, planned bool) string {
	switch {
	case planned:
		return MovedPlanned
	case from != "":
		return MovedEnded
	}
	return MovedUnheld
}

// Place is where a key belongs.
type Place struct {
	Shard int `json:"shard"`
	// Holder is the replica that holds the shard, and Address that of its console; absent: none, or
	// not known.
	Holder  string `json:"holder,omitempty"`
	Address string `json:"address,omitempty"`
	// Here: it is the replica that gives this answer. Stage of the shard, as in Shard.
	Here  bool   `json:"here,omitempty"`
	Stage string `json:"stage,omitempty"`
}

// String says who has the key.
func (p Place) String() string {
	text := fmt.Sprintf("shard %d, which ", p.Shard)
	switch {
	case p.Holder == "":
		return text + "no replica holds"
	case p.Here:
		return text + "this replica holds"
	case p.Address != "":
		return text + p.Holder + " holds (" + p.Address + ")"
	}
	return text + p.Holder + " holds"
}

// hidden returns a copy of s without what looks like a credential.
func (s *Sharing) hidden() *Sharing {
	if s == nil {
		return nil
	}
	out := *s
	out.Waits = redact.Text(s.Waits)
	out.Replicas, out.Shards, out.Moves = append([]Replica{}, s.Replicas...), append([]Shard{}, s.Shards...), append([]Move{}, s.Moves...)
	for i := range out.Replicas {
		out.Replicas[i].Address = redact.Text(out.Replicas[i].Address)
	}
	return &out
}

// division returns what the plan says.
func (s *Sharing) division() (by shards.By, count int, ok bool) {
	number, what, _ := strings.Cut(s.Plan, "/")
	count, err := strconv.Atoi(number)
	return shards.By(what), count, err == nil && count > 0
}

// shardOf returns the shard of a key. By UID it is known if a cache has the object.
func (s *Sharing) shardOf(p Program, c reconcile.Snapshot, key string) (shard int, known bool) {
	by, count, ok := s.division()
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		namespace, name = "", key
	}
	switch {
	case !ok || c.OwnShards && !c.Singleton:
		return 0, false
	case c.Singleton:
		return 0, true
	case by == shards.Namespace:
		return shards.Of(namespace, count), true
	}
	i := slices.IndexFunc(c.Sources, func(s source.Snapshot) bool { return s.Self })
	if i < 0 {
		return 0, false
	}
	obj, _ := p.Cached(c.Sources[i].Kind, kube.Key{Namespace: namespace, Name: name})
	if obj == nil {
		return 0, false
	}
	return shards.Of(string(obj.GetUID()), count), true
}

// NameKeys names the keys in flight of the shards that this replica drains.
func (s *Sharing) NameKeys(p Program, controllers []reconcile.Snapshot) {
	draining := slices.ContainsFunc(s.Shards, func(one Shard) bool { return one.Stage == StageDraining })
	for _, c := range controllers {
		for _, r := range c.Running {
			if !draining {
				return
			}
			if n, known := s.shardOf(p, c, r.Key); known && n < len(s.Shards) && s.Shards[n].Stage == StageDraining {
				s.Shards[n].Keys = append(s.Shards[n].Keys, c.Name+" "+r.Key)
			}
		}
	}
}

// PlaceOf returns where a key of a controller belongs; nil: nothing is shared, or it is not known,
// as for an object that this replica does not have, if objects are divided by UID.
func PlaceOf(p Program, controller, key string) *Place {
	c := p.Controller(controller)
	if c == nil {
		return nil
	}
	return placeOf(p, c, key)
}

func placeOf(p Program, c Controlled, key string) *Place {
	s := p.Sharing()
	if s == nil {
		return nil
	}
	n, known := s.shardOf(p, c.Snapshot(), key)
	if !known || n >= len(s.Shards) {
		return nil
	}
	one := s.Shards[n]
	out := &Place{Shard: n, Holder: one.Holder, Here: one.Holder != "" && one.Holder == s.Identity, Stage: one.Stage}
	for _, r := range s.Replicas {
		if r.Name == one.Holder {
			out.Address = redact.Text(r.Address)
		}
	}
	return out
}

// Elsewhere says which replica may have a key that this one does not know; empty: none.
func Elsewhere(p Program, c Controlled, key string) string {
	if p.Sharing() == nil {
		return ""
	}
	if place := placeOf(p, c, key); place != nil {
		return "; it belongs to " + place.String()
	}
	return "; another replica may have it, since this one cannot tell its shard: kubectl flyball why asks the one that does"
}

func divisionText(d state.Division) string {
	if d.Count == 0 {
		return ""
	}
	return strings.TrimSuffix(d.String(), " ("+string(d.Form)+")")
}

// Stages of a Shard.
const (
	StageHeld     = "held"
	StageClaimed  = "claimed"
	StageDraining = "draining"
)

const (
	longDrain = time.Minute // of a shard
	mostNamed = 3           // keys of a shard
)

// problemsOfSharing returns what is wrong with the division; nil s: there is none.
func problemsOfSharing(s *Sharing, o Overview) (out []Problem) {
	if s == nil || o.Phase != "running" {
		return nil
	}
	of := func(name, text, hint string, since time.Time) {
		out = append(out, Problem{Of: "sharing", Name: name, Text: text, Hint: hint, Since: since})
	}
	if s.Waits != "" && o.Now.Sub(o.Since) > longWait {
		of(s.Identity, "this replica takes no shards: "+s.Waits, "give all replicas the same -shards and -shard-by; in a rollout it ends when the old replicas have ended", o.Since)
	}
	for _, one := range s.Shards {
		if one.Stage == StageDraining && o.Now.Sub(one.Since) > longDrain && len(out) < mostFindings {
			of(fmt.Sprintf("shard %d", one.Shard), "it cannot move, because reconciles have not ended"+orNothing(": ", named(one.Keys)), "the log has their stacks after the soft deadline", one.Since)
		}
	}
	if unheld, oldest := s.unheld(o); len(unheld) > 0 {
		of("shards "+shards.SetOf(unheld...).String(), "no replica holds them, and their keys are not reconciled", "the log of the replica that is to take them says why; see its Role for Leases", oldest)
	}
	return out
}

// unheld returns the shards that nobody has held for two lease durations, and since when.
func (s *Sharing) unheld(o Overview) (some []int, oldest time.Time) {
	for _, one := range s.Shards {
		since := one.Since
		if since.IsZero() && s.Waits == "" { // it has no Lease
			since = o.Since
		}
		if one.Holder != "" || since.IsZero() || o.Now.Sub(since).Seconds() <= 2*s.LeaseSeconds {
			continue
		}
		if some = append(some, one.Shard); oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
	}
	return some, oldest
}

// named returns the first keys.
func named(keys []string) string {
	text := strings.Join(keys[:min(len(keys), mostNamed)], ", ")
	if more := len(keys) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
