// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

// answer is the overview of one replica.
type answer struct {
	*operator
	raw json.RawMessage
	overview
}

// overviews asks all replicas. Those that do not answer are reported, if one does.
func (s *session) overviews(ctx context.Context) (answers []answer, err error) {
	all, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, o := range all {
		raw, got, err := o.overview(ctx)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		answers = append(answers, answer{o, raw, got})
	}
	switch {
	case len(answers) == 0:
		return nil, failed
	case failed != nil && ctx.Err() == nil:
		fmt.Fprintln(s.problems, textlog.VisibleLines(failed.Error()))
		s.stale = true
	}
	s.stale = s.stale || len(all) > 1 && len(inEffect(answers).Sharing.replicas()) != len(all)
	return answers, nil
}

func (s *sharing) replicas() []replica {
	if s == nil {
		return nil
	}
	return s.Replicas
}

// inEffect returns the answer of a replica that takes shards, or else the first one.
func inEffect(answers []answer) answer {
	i := slices.IndexFunc(answers, func(a answer) bool { return a.Sharing != nil && a.Sharing.Waits == "" })
	return answers[max(i, 0)]
}

// rawOf returns the only answer, or a list with the Pod of each.
func rawOf(answers []answer, name string, of func(answer) json.RawMessage) any {
	if len(answers) == 1 {
		return of(answers[0])
	}
	var all []map[string]any
	for _, a := range answers {
		all = append(all, map[string]any{"pod": a.pod, name: of(a)})
	}
	return map[string]any{"replicas": all}
}

// merged returns the overview of all replicas as that of one program.
func merged(answers []answer) overview {
	out := inEffect(answers).overview
	if len(answers) == 1 {
		return out
	}
	out.Leadership, out.Problems, out.Controllers, out.Informers = nil, nil, nil, nil
	for _, a := range answers {
		if a.Since.Before(out.Since) {
			out.Since = a.Since
		}
		for _, c := range a.Controllers {
			i := slices.IndexFunc(out.Controllers, func(o controller) bool { return o.Name == c.Name })
			if i < 0 {
				i, out.Controllers = len(out.Controllers), append(out.Controllers, controller{Name: c.Name, Synced: true})
			}
			out.Controllers[i] = out.Controllers[i].and(c)
		}
		for _, one := range a.Informers {
			i := slices.IndexFunc(out.Informers, func(o informer) bool { return o.Kind == one.Kind })
			if i < 0 {
				i, out.Informers = len(out.Informers), append(out.Informers, informer{Kind: one.Kind, APIVersion: one.APIVersion})
			}
			out.Informers[i] = out.Informers[i].and(one, a.pod)
		}
	}
	out.Problems = problemsOf(answers)
	return out
}

// problemsOf returns what is wrong, with the Pod that says so. What several say is there once.
func problemsOf(answers []answer) (out []problem) {
	type id struct{ of, name, key, text string }
	said := map[id]int{}
	of := func(p problem) id { return id{p.Of, p.Name, p.Key, p.Text} }
	for _, a := range answers {
		for _, p := range a.Problems {
			said[of(p)]++
		}
	}
	for _, a := range answers {
		for _, p := range a.Problems {
			n := said[of(p)]
			said[of(p)] = 0
			if n == 0 {
				continue
			}
			if n == 1 {
				p.Of = "Pod " + a.pod + ": " + p.Of
			}
			out = append(out, p)
		}
	}
	return out
}

// reconciles returns how many have ended.
func (c controller) reconciles() (n float64) {
	for _, count := range c.Outcomes {
		n += float64(count)
	}
	return n
}

// and returns c with the numbers of another replica.
func (c controller) and(o controller) controller {
	n, more := c.reconciles(), o.reconciles()
	if all := n + more; all > 0 {
		c.MeanSeconds = (c.MeanSeconds*n + o.MeanSeconds*more) / all
		c.MeanWaitSeconds = (c.MeanWaitSeconds*n + o.MeanWaitSeconds*more) / all
	}
	outcomes := map[string]uint64{}
	for _, some := range []map[string]uint64{c.Outcomes, o.Outcomes} {
		for outcome, count := range some {
			outcomes[outcome] += count
		}
	}
	c.Outcomes, c.Synced = outcomes, c.Synced && o.Synced
	c.Workers, c.Active, c.Ready = c.Workers+o.Workers, c.Active+o.Active, c.Ready+o.Ready
	c.Delayed, c.Failing = c.Delayed+o.Delayed, c.Failing+o.Failing
	if o.LastEnded.After(c.LastEnded) {
		c.LastEnded = o.LastEnded
	}
	from := slices.Clone(c.Sources)
	for _, s := range o.Sources {
		i := slices.IndexFunc(from, func(is origin) bool { return is.Name == s.Name && is.Kind == s.Kind })
		if i < 0 {
			from = append(from, s)
			continue
		}
		from[i].Events, from[i].Synced = from[i].Events+s.Events, from[i].Synced && s.Synced
	}
	c.Sources, c.Singleton, c.OwnShards = from, o.Singleton, o.OwnShards
	return c
}

// and returns i with what a Pod has.
func (i informer) and(o informer, pod string) informer {
	i.Objects, i.Undecodable, i.Bytes, i.Dropped = i.Objects+o.Objects, i.Undecodable+o.Undecodable, i.Bytes+o.Bytes, i.Dropped+o.Dropped
	i.Form, i.Packed = cmp.Or(i.Form, o.Form), cmp.Or(i.Packed, o.Packed)
	i.Scopes, i.Handlers = slices.Clone(i.Scopes), slices.Clone(i.Handlers)
	for _, s := range o.Scopes {
		s.Scope = pod + ": " + s.Scope
		i.Scopes = append(i.Scopes, s)
	}
	for _, h := range o.Handlers {
		n := slices.IndexFunc(i.Handlers, func(is eventHandler) bool { return is.Name == h.Name })
		if n < 0 {
			i.Handlers = append(i.Handlers, h)
			continue
		}
		i.Handlers[n].Backlog += h.Backlog
	}
	return i
}

// keysOfAll returns the keys of a controller on all replicas. One that was on several is that of
// the replica that has it in its queue, or ran it last.
func keysOfAll(ctx context.Context, answers []answer, name string, q query) (keyPage, error) {
	if len(answers) == 1 {
		return answers[0].keys(ctx, name, q)
	}
	type known struct {
		keyRow
		raw json.RawMessage
	}
	var rows []known
	at := map[string]int{}
	all := keyPage{Version: "v1", Controller: name, Keys: []json.RawMessage{}}
	for _, a := range answers {
		page, err := a.keys(ctx, name, q)
		if err != nil {
			return all, err
		}
		all.Known, all.Matched, all.Next = all.Known+page.Known, all.Matched+page.Matched, max(all.Next, page.Next)
		for _, raw := range page.Keys {
			one := known{raw: raw}
			if err := decode(raw, &one.keyRow); err != nil {
				return all, err
			}
			i, twice := at[one.Key]
			switch {
			case !twice:
				at[one.Key], rows = len(rows), append(rows, one)
			case one.newer(rows[i].keyRow):
				rows[i] = one
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b known) int { return a.compare(b.keyRow, q.sort) })
	if q.limit > 0 && len(rows) > q.limit {
		rows, all.Next = rows[:q.limit], q.limit
	}
	for _, row := range rows {
		all.Keys = append(all.Keys, row.raw)
	}
	return all, nil
}

// newer reports whether k is more than what another replica knows about its key.
func (k keyRow) newer(o keyRow) bool {
	if queued := k.State != "idle"; queued != (o.State != "idle") {
		return queued
	}
	return k.Ended.After(o.Ended)
}

// compare orders keys as an operator does.
func (k keyRow) compare(o keyRow, sort string) int {
	byKey := cmp.Compare(k.Key, o.Key)
	switch sort {
	case "key":
		return byKey
	case "failures":
		return cmp.Or(cmp.Compare(o.Attempts, k.Attempts), byKey)
	case "age":
		return cmp.Or(cmp.Compare(o.AgeSeconds, k.AgeSeconds), byKey)
	}
	return cmp.Or(o.Ended.Compare(k.Ended), byKey)
}

// history returns a key with its runs, from the replica that has its shard, or else from one that
// had.
func (s *session) history(ctx context.Context, answers []answer, c controller, key string) (json.RawMessage, history, error) {
	type found struct {
		raw json.RawMessage
		history
	}
	got, err := firstOf(s.ordered(ctx, answers, c, key), func(o *operator) (found, error) {
		raw, told, err := o.history(ctx, c.Name, key)
		return found{raw, told}, err
	})
	return got.raw, got.history, err
}

// ordered returns the replicas, first the one that holds the shard of a key. It says which that is.
func (s *session) ordered(ctx context.Context, answers []answer, c controller, key string) (out []*operator) {
	for _, a := range answers {
		out = append(out, a.operator)
	}
	if len(answers) == 1 {
		return out
	}
	all := inEffect(answers)
	n, known := s.shardOf(ctx, all.overview, c, key)
	if !known || n >= len(all.Sharing.Shards) {
		return out
	}
	holder := all.Sharing.Shards[n].Holder
	i := slices.IndexFunc(out, func(o *operator) bool { return o.member == holder })
	if i < 0 {
		return out
	}
	s.say(fmt.Sprintf("%s of controller %s is in shard %d of %s, which %s holds", key, c.Name, n, all.Sharing.Plan, out[i].name))
	return slices.Concat(out[i:i+1], out[:i], out[i+1:])
}

// shardOf returns the shard of a key of a controller. By UID it asks the API server for the object.
func (s *session) shardOf(ctx context.Context, all overview, c controller, key string) (shard int, known bool) {
	if all.Sharing == nil {
		return 0, false
	}
	number, by, _ := strings.Cut(all.Sharing.Plan, "/")
	count, err := strconv.Atoi(number)
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		namespace, name = "", key
	}
	switch {
	case err != nil || count < 1 || c.OwnShards && !c.Singleton:
		return 0, false
	case c.Singleton:
		return 0, true
	case by == string(shards.Namespace):
		return shards.Of(namespace, count), true
	}
	kind, ok := kindOf(all, c)
	if !ok || s.finder == nil {
		return 0, false
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(kind)
	if err := s.finder.client.Get(ctx, kube.Key{Namespace: namespace, Name: name}, obj); err != nil {
		return 0, false // it may be gone, or not to be read by this user: any replica may know its runs
	}
	return shards.Of(string(obj.UID), count), true
}

// kindOf returns the kind whose objects have the keys of a controller.
func kindOf(all overview, c controller) (schema.GroupVersionKind, bool) {
	i := slices.IndexFunc(c.Sources, func(o origin) bool { return o.Self })
	if i < 0 {
		return schema.GroupVersionKind{}, false
	}
	n := slices.IndexFunc(all.Informers, func(one informer) bool { return one.Kind == c.Sources[i].Kind })
	if n < 0 {
		return schema.GroupVersionKind{}, false
	}
	return schema.FromAPIVersionAndKind(all.Informers[n].APIVersion, schema.ParseGroupKind(c.Sources[i].Kind).Kind), true
}
