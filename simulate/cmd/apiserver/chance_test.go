// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/tls"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/simulate"
)

// mustTLS trusts the server, and has no certificate.
func mustTLS(t *testing.T, r *running) *tls.Config {
	t.Helper()
	stranger := rest.AnonymousClientConfig(r.config)
	secured, err := rest.TLSConfigFor(stranger)
	if err != nil {
		t.Fatal(err)
	}
	return secured
}

func TestChance_RequestsAreRefusedAsAsked(t *testing.T) {
	r := start(t, "-errors", "1")
	if got := r.ask(t, "GET", configMaps, "", 500); !strings.Contains(got, `"reason":"InternalError"`) {
		t.Errorf("the answer is %s, want a Status", got)
	}
	r.ask(t, "GET", "/readyz", "", 200)

	r = start(t, "-throttle", "1")
	answer, _, err := r.send(t, "GET", configMaps, "")
	if err != nil || answer.StatusCode != 429 || answer.Header.Get("Retry-After") != "1" {
		t.Errorf("got %v, %v, want 429 with Retry-After: 1", answer, err)
	}
}

func TestChance_LostResponsesAreOfStoredWrites(t *testing.T) {
	audited := filepath.Join(t.TempDir(), "audit")
	r := start(t, "-lost-responses", "1", "-audit", audited)
	if answer, text, err := r.send(t, "POST", configMaps, configMap("a")); err == nil {
		t.Errorf("the answer to a write is %v %s, want a broken connection", answer, text)
	}
	r.ask(t, "GET", configMaps+"/a", "", 200)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(audited); err != nil || !strings.Contains(string(text), `"verb":"create","uri":"`+configMaps+`","code":0}`) {
		t.Errorf("the audit log is %s, %v, want the write without a code", text, err)
	}
}

func TestChance_WatchesEnd(t *testing.T) {
	for _, fault := range []string{"-watch-cuts", "-cache-restarts"} {
		r := start(t, fault, "1ms")
		watch, err := r.client.Get(r.config.Host + configMaps + "?watch=true")
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(watch.Body)
		for lines.Scan() {
		}
		if err := lines.Err(); err != nil {
			t.Errorf("%s: the watch ended with %v, want a clean end", fault, err)
		}
		_ = watch.Body.Close()
	}
}

func TestChance_LatencyDelaysAllButProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChance(rates{latency: 50 * time.Millisecond}, &audit{})
		for path, want := range map[string]time.Duration{configMaps: c.latency, "/readyz": 0} {
			for _, began := range []bool{false, true} {
				c.under.Store(nil)
				if began {
					c.begin(simulate.New(simulate.Options{}))
				}
				before := time.Now()
				c.Asked(simulate.Request{Verb: "get", Path: path})
				if took := time.Since(before); began && took != want || !began && took != 0 {
					t.Errorf("%s, after the start: %v, took %v, want %v, before the start nothing", path, began, took, want)
				}
			}
		}
	})
}

// One seed gives one series of faults, with the shares that were asked for.
func TestChance_SharesFollowFromTheSeed(t *testing.T) {
	series := func(seed uint64) (refused []bool, share float64) {
		c := newChance(rates{seed: seed}, &audit{})
		for n := range uint64(20_000) {
			is := c.draw(n).Float64() < 0.1
			if refused = append(refused, is); is {
				share++
			}
		}
		return refused, share / 20_000
	}
	first, share := series(7)
	if math.Abs(share-0.1) > 0.01 {
		t.Errorf("%v of the requests are drawn, want 0.1", share)
	}
	again, _ := series(7)
	other, _ := series(8)
	same, differ := true, false
	for i := range first {
		same, differ = same && first[i] == again[i], differ || first[i] != other[i]
	}
	if !same || !differ {
		t.Errorf("one seed gives one series: %v, another seed another: %v; want both", same, differ)
	}
}
