// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import "time"

// Version of the schema, the part of the path after /debug/flyball/.
const Version = "v1"

// Overview is the whole program in short: GET overview.
type Overview struct {
	Version string `json:"version"`
	// Program is its name, and Now the time of the answer on its clock.
	Program string    `json:"program"`
	Now     time.Time `json:"now"`
	// Phase of the manager, since a time.
	Phase string    `json:"phase"`
	Since time.Time `json:"since"`
	// Actions: the program takes actions. CannotPause is why it does not pause; absent: it does.
	Actions     bool   `json:"actions,omitempty"`
	CannotPause string `json:"cannotPause,omitempty"`
	// Leadership of this process; absent without an election.
	Leadership *Leadership `json:"leadership,omitempty"`
	// Sharing of the objects among replicas; absent: this process does not share them.
	Sharing *Sharing `json:"sharing,omitempty"`
	// Problems are what is wrong now, the longest first.
	Problems    []Problem    `json:"problems"`
	Controllers []Controller `json:"controllers"`
	Informers   []Informer   `json:"informers"`
	Members     []Member     `json:"members"`
	// Webhooks of this process; absent: it serves none.
	Webhooks *Webhooks        `json:"webhooks,omitempty"`
	Requests []Requests       `json:"requests"`
	Events   []RecordedEvents `json:"events"`
}

// Leadership is an election as this process sees it.
type Leadership struct {
	Lease    string `json:"lease"`
	Identity string `json:"identity,omitempty"`
	Leading  bool   `json:"leading"`
	Holder   string `json:"holder,omitempty"`
	// Since is when the holder took the lease, by its clock.
	Since   time.Time `json:"since,omitzero"`
	Refused string    `json:"refused,omitempty"`
}

// Problem is one thing that is wrong now.
type Problem struct {
	// Of is what has it: "controller", "informer", "leadership", "sharing", "member" or "webhooks"; Name
	// which one.
	Of   string `json:"of"`
	Name string `json:"name"`
	// Key that has it; empty: none.
	Key string `json:"key,omitempty"`
	// Finding is the kind of what is found by watching, such as "hot loop" or "unread watch"; empty:
	// it is no such problem.
	Finding string `json:"finding,omitempty"`
	// Since is when it began; absent: not known.
	Since time.Time `json:"since,omitzero"`
	Text  string    `json:"text"`
	// Hint is what can be done.
	Hint string `json:"hint,omitempty"`
}

// Member is what the manager runs.
type Member struct {
	Stage string    `json:"stage"`
	Name  string    `json:"name"`
	State string    `json:"state"`
	Since time.Time `json:"since"`
	Error string    `json:"error,omitempty"`
}

// Controller is one controller in numbers.
type Controller struct {
	Name    string `json:"name"`
	Synced  bool   `json:"synced"`
	Workers int    `json:"workers"`
	Active  int    `json:"active"`
	// Keys of the queue: those ready for a worker, held by one, and waiting for a time.
	Ready   int `json:"ready"`
	Held    int `json:"held"`
	Delayed int `json:"delayed"`
	// Failing keys are retried with backoff.
	Failing int `json:"failing"`
	// Reconciles that have ended, by outcome.
	Outcomes map[string]uint64 `json:"outcomes"`
	Overdue  uint64            `json:"overdue"`
	// Paused is why the controller does not run; absent: it does. PausedKeys are paused by
	// themselves, and Woken paused keys run when they are resumed.
	Paused     *Paused `json:"paused,omitempty"`
	PausedKeys int     `json:"pausedKeys,omitempty"`
	Woken      int     `json:"woken,omitempty"`
	// Times of reconciles and of waits in the queue: mean of all.
	MeanSeconds     float64   `json:"meanSeconds"`
	MeanWaitSeconds float64   `json:"meanWaitSeconds"`
	LastEnded       time.Time `json:"lastEnded,omitzero"`
	Sources         []Source  `json:"sources"`
	Running         []Running `json:"running"`
	// Recent are the intervals of ten seconds of the last ten minutes, the oldest first. Those in
	// which nothing happened are left out.
	Recent []Interval `json:"recent"`
	// Singleton: one replica, which holds shard 0, reconciles all keys. OwnShards: the controller itself
	// decides the shard of a key. Foreign counts the keys that were dropped because another replica has
	// their shards.
	Singleton bool   `json:"singleton,omitempty"`
	OwnShards bool   `json:"ownShards,omitempty"`
	Foreign   uint64 `json:"foreign,omitempty"`
}

// Interval is what a controller did in ten seconds: reconciles that ended, how many keys waited for
// a worker at most, and how long one had waited.
type Interval struct {
	Began         time.Time `json:"began"`
	Done          int       `json:"done"`
	Requeued      int       `json:"requeued"`
	Failed        int       `json:"failed"`
	Ready         int       `json:"ready"`
	OldestSeconds float64   `json:"oldestSeconds"`
}

// Reconciles returns the number of those that have ended.
func (c Controller) Reconciles() (n uint64) {
	for _, count := range c.Outcomes {
		n += count
	}
	return n
}

// Source is where a controller's keys come from.
type Source struct {
	Name   string `json:"name"`
	Kind   string `json:"kind,omitempty"`
	Synced bool   `json:"synced"`
	// Self: its keys are the names of the objects.
	Self bool `json:"self,omitempty"`
	// Events received, those that predicates dropped, and the keys added.
	Events  uint64 `json:"events"`
	Dropped uint64 `json:"dropped"`
	Keys    uint64 `json:"keys"`
}

// Running is a reconcile in progress.
type Running struct {
	Key   string    `json:"key"`
	ID    string    `json:"id"`
	Since time.Time `json:"since"`
}

// Informer is one cache.
type Informer struct {
	Kind string `json:"kind"`
	// APIVersion in which its objects are read.
	APIVersion  string `json:"apiVersion"`
	Synced      bool   `json:"synced"`
	Objects     int    `json:"objects"`
	Undecodable int    `json:"undecodable"`
	// Bytes of memory of the objects, and why they are packed.
	Bytes    int64          `json:"bytes"`
	Packed   string         `json:"packed,omitempty"`
	Fields   []string       `json:"fields,omitempty"`
	Waiting  int            `json:"waiting"`
	Scopes   []Scope        `json:"scopes"`
	Handlers []EventHandler `json:"handlers"`
	// UnusedSince is since when nothing uses it while the program works; absent: something does.
	UnusedSince time.Time `json:"unusedSince,omitzero"`
	// Scans are reads of all its objects by reconciles.
	Scans []Scan `json:"scans,omitempty"`
	// Division is the part of the objects that is held, such as "shards 0-7 of 32 by uid", and Form who
	// selects it: "server", "wire" (the informer itself, before it decodes) or "whole" (all is held);
	// absent: nothing is divided. Dropped objects and events are of other shards, and were sent.
	Division     string `json:"division,omitempty"`
	Form         string `json:"form,omitempty"`
	Dropped      uint64 `json:"dropped,omitempty"`
	DroppedBytes uint64 `json:"droppedBytes,omitempty"`
}

// State returns the worst state of its scopes.
func (i Informer) State() string {
	for _, s := range i.Scopes {
		if s.State != "Live" {
			return s.State
		}
	}
	return "Live"
}

// Scope is one list and watch.
type Scope struct {
	Scope       string    `json:"scope"`
	State       string    `json:"state"`
	Since       time.Time `json:"since"`
	Reason      string    `json:"reason,omitempty"`
	Hint        string    `json:"hint,omitempty"`
	NextTry     time.Time `json:"nextTry,omitzero"`
	Version     uint64    `json:"version"`
	LastContact time.Time `json:"lastContact,omitzero"`
	Relists     int       `json:"relists"`
	Watches     int       `json:"watches"`
}

// EventHandler receives an informer's events.
type EventHandler struct {
	Name           string  `json:"name"`
	Backlog        int     `json:"backlog"`
	Delivered      uint64  `json:"delivered"`
	Panics         uint64  `json:"panics"`
	RunningSeconds float64 `json:"runningSeconds"`
	OldestSeconds  float64 `json:"oldestSeconds"`
}
