// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"time"
)

// The answers of an operator, as far as they are printed. The operator may be newer or older than
// this program: it has more fields, or lacks some.

type overview struct {
	Program     string       `json:"program"`
	Now         time.Time    `json:"now"`
	Phase       string       `json:"phase"`
	Since       time.Time    `json:"since"`
	Leadership  *leadership  `json:"leadership"`
	Sharing     *sharing     `json:"sharing"`
	Problems    []problem    `json:"problems"`
	Controllers []controller `json:"controllers"`
	Informers   []informer   `json:"informers"`
}

type leadership struct {
	Lease   string `json:"lease"`
	Leading bool   `json:"leading"`
	Holder  string `json:"holder"`
}

// sharing is how replicas share the objects.
type sharing struct {
	Identity string    `json:"identity"`
	Plan     string    `json:"plan"`
	Waits    string    `json:"waits"`
	Replicas []replica `json:"replicas"`
	Shards   []shard   `json:"shards"`
}

type replica struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Weight  int    `json:"weight"`
	Leaving bool   `json:"leaving"`
	Plan    string `json:"plan"`
}

type shard struct {
	Shard  int    `json:"shard"`
	Holder string `json:"holder"`
	Next   string `json:"next"`
}

type problem struct {
	Of    string    `json:"of"`
	Name  string    `json:"name"`
	Key   string    `json:"key"`
	Since time.Time `json:"since"`
	Text  string    `json:"text"`
	Hint  string    `json:"hint"`
}

type controller struct {
	Name            string            `json:"name"`
	Synced          bool              `json:"synced"`
	Workers         int               `json:"workers"`
	Active          int               `json:"active"`
	Ready           int               `json:"ready"`
	Delayed         int               `json:"delayed"`
	Failing         int               `json:"failing"`
	Outcomes        map[string]uint64 `json:"outcomes"`
	MeanSeconds     float64           `json:"meanSeconds"`
	MeanWaitSeconds float64           `json:"meanWaitSeconds"`
	LastEnded       time.Time         `json:"lastEnded"`
	Sources         []origin          `json:"sources"`
	Singleton       bool              `json:"singleton"`
	OwnShards       bool              `json:"ownShards"`
}

// origin is a source of keys.
type origin struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Synced bool   `json:"synced"`
	Self   bool   `json:"self"`
	Events uint64 `json:"events"`
}

type informer struct {
	Kind        string         `json:"kind"`
	APIVersion  string         `json:"apiVersion"`
	Form        string         `json:"form"`
	Dropped     uint64         `json:"dropped"`
	Objects     int            `json:"objects"`
	Undecodable int            `json:"undecodable"`
	Bytes       int64          `json:"bytes"`
	Packed      string         `json:"packed"`
	Scopes      []scope        `json:"scopes"`
	Handlers    []eventHandler `json:"handlers"`
}

type scope struct {
	Scope       string    `json:"scope"`
	State       string    `json:"state"`
	Since       time.Time `json:"since"`
	Reason      string    `json:"reason"`
	Hint        string    `json:"hint"`
	Version     uint64    `json:"version"`
	LastContact time.Time `json:"lastContact"`
	Relists     int       `json:"relists"`
	Watches     int       `json:"watches"`
}

type eventHandler struct {
	Name    string `json:"name"`
	Backlog int    `json:"backlog"`
}

type keyPage struct {
	Version    string            `json:"version"`
	Controller string            `json:"controller"`
	Known      int               `json:"known"`
	Matched    int               `json:"matched"`
	Keys       []json.RawMessage `json:"keys"` // of keyRow, with all fields
	Next       int               `json:"next,omitempty"`
}

type keyRow struct {
	Key          string    `json:"key"`
	State        string    `json:"state"`
	AgeSeconds   float64   `json:"ageSeconds"`
	Due          time.Time `json:"due"`
	Attempts     int       `json:"attempts"`
	Outcome      string    `json:"outcome"`
	Ended        time.Time `json:"ended"`
	Error        string    `json:"error"`
	FailingSince time.Time `json:"failingSince"`
	Runs         int       `json:"runs"`
	Paused       *paused   `json:"paused"`
}

// paused is who has paused a key or its controller.
type paused struct {
	By    string    `json:"by"`
	Since time.Time `json:"since"`
}

// history is one key with its recorded runs, the newest first.
type history struct {
	Controller string `json:"controller"`
	keyRow
	Findings []finding `json:"findings"`
	Timeline []run     `json:"timeline"`
}

// finding is what the runs of a key show that is wrong.
type finding struct {
	Since time.Time `json:"since"`
	Text  string    `json:"text"`
}

type run struct {
	ID           string    `json:"id"`
	Began        time.Time `json:"began"`
	WaitSeconds  float64   `json:"waitSeconds"`
	TookSeconds  float64   `json:"tookSeconds"`
	Causes       []cause   `json:"causes"`
	CauseCount   int       `json:"causeCount"`
	Outcome      string    `json:"outcome"`
	AfterSeconds float64   `json:"afterSeconds"`
	Reason       string    `json:"reason"`
	Error        string    `json:"error"`
	Requests     []request `json:"requests"`
	MoreRequests int       `json:"moreRequests"`
}

type cause struct {
	Text        string   `json:"text"`
	Source      string   `json:"source"`
	Event       string   `json:"event"`
	Kind        string   `json:"kind"`
	Object      string   `json:"object"`
	OldVersion  uint64   `json:"oldVersion"`
	Version     uint64   `json:"version"`
	Changed     []string `json:"changed"`
	MoreChanged int      `json:"moreChanged"`
}

type request struct {
	Verb          string   `json:"verb"`
	Resource      string   `json:"resource"`
	Kind          string   `json:"kind"`
	Object        string   `json:"object"`
	Code          int      `json:"code"`
	TookSeconds   float64  `json:"tookSeconds"`
	SentBytes     int64    `json:"sentBytes"`
	ReceivedBytes int64    `json:"receivedBytes"`
	Effect        string   `json:"effect"`
	Fields        []string `json:"fields"`
	MoreFields    int      `json:"moreFields"`
}
