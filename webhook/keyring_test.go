// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/keypair"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func testPolicy() policy {
	return policy{names: []string{"hooks.default.svc", "127.0.0.1"}, lifetime: 90 * day, authorityLifetime: 365 * day}
}

func taken(t *testing.T, k keyring, s step, now time.Time, p policy) keyring {
	t.Helper()
	k, err := k.take(s, now, p)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	data := map[string][]byte{"other": []byte("stays")}
	k.write(data)
	if string(data["other"]) != "stays" {
		t.Error("a part of the Secret that is not ours has gone")
	}
	return readKeyring(data)
}

func TestKeyring_WhatIsToBeDone_H5(t *testing.T) {
	p := testPolicy()
	fresh := taken(t, keyring{}, stepCreate, noon, p)
	announced := taken(t, fresh, stepAnnounce, noon.Add(250*day), p)
	promoted := taken(t, announced, stepPromote, noon.Add(250*day), p)
	others := p
	others.names = []string{"other.default.svc"}
	without := func(change func(k *keyring)) keyring { k := announced; change(&k); return k }
	for _, c := range []struct {
		name  string
		ring  keyring
		at    time.Duration
		known time.Duration
		want  step
	}{
		{"nothing is there", keyring{}, 0, -1, stepCreate},
		{"all is well", fresh, day, time.Hour, stepKeep},
		{"all is well, and not told", fresh, day, -1, stepKeep},
		{"a third is left", fresh, 61 * day, time.Hour, stepIssue},
		{"the certificate has expired", fresh, 91 * day, time.Hour, stepIssue},
		{"the authority has a third left", fresh.must(t, stepIssue, 240*day, p), 250 * day, time.Hour, stepAnnounce},
		{"the next is not known yet", fresh.must(t, stepIssue, 240*day, p).must(t, stepAnnounce, 250*day, p), 251 * day, -1, stepKeep},
		{"the next is known since a moment", fresh.must(t, stepIssue, 240*day, p).must(t, stepAnnounce, 250*day, p), 251 * day, settling - 1, stepKeep},
		{"the next is known to all", fresh.must(t, stepIssue, 240*day, p).must(t, stepAnnounce, 250*day, p), 251 * day, settling, stepPromote},
		{"the old authority is trusted on", promoted, 260 * day, time.Hour, stepKeep},
		{"the old authority has expired", promoted.must(t, stepIssue, 360*day, p), 366 * day, time.Hour, stepForget},
		{"all have expired", fresh, 400 * day, time.Hour, stepCreate},
		{"what was served has expired while none could be told of the next", announced, 366 * day, -1, stepPromote},
		{"the key of the authority is lost", without(func(k *keyring) { k.signer, k.next = nil, nil }), 10 * day, time.Hour, stepAnnounce},
		{"the certificate is lost", without(func(k *keyring) { k.serving = nil }), 251 * day, time.Hour, stepIssue},
		{"the authority is not trusted", without(func(k *keyring) { k.trusted = nil }), 251 * day, time.Hour, stepCreate},
	} {
		if got := c.ring.step(noon.Add(c.at), c.known, p); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := fresh.step(noon.Add(day), time.Hour, others); got != stepIssue {
		t.Errorf("another name: %s, want %s", got, stepIssue)
	}
	both := taken(t, fresh, stepIssue, noon.Add(day), others)
	if !both.works(noon.Add(day), p) || !both.works(noon.Add(day), others) {
		t.Errorf("names %v: replicas that ask for different names would change it forever", namesOf(both.serving.Leaf))
	}
}

func (k keyring) must(t *testing.T, s step, at time.Duration, p policy) keyring {
	t.Helper()
	return taken(t, k, s, noon.Add(at), p)
}

func TestKeyring_SpoiledPartsAreNotThere(t *testing.T) {
	data := map[string][]byte{}
	fresh := taken(t, keyring{}, stepCreate, noon, testPolicy())
	fresh.write(data)
	for part, whole := range data {
		for _, spoiled := range [][]byte{nil, whole[:len(whole)/2], []byte("spoiled"), bytes.ToLower(whole)} {
			data[part] = spoiled
			ring := readKeyring(data)
			if s := ring.step(noon, time.Hour, testPolicy()); s == stepKeep {
				t.Errorf("%s is %q: nothing is done about it", part, spoiled)
			} else if next := taken(t, ring, s, noon, testPolicy()); !next.works(noon, testPolicy()) {
				t.Errorf("%s is %q: it does not work after %s", part, spoiled, s)
			}
		}
		data[part] = whole
	}
}

// For years, replicas read the Secret from time to time, and clients trust what they
// serve, however late they received the bundle.
func TestKeyring_RotationIsNeverSeen_H5(t *testing.T) {
	p := testPolicy()
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 5))
		secret := taken(t, keyring{}, stepCreate, noon, p)
		told, toldAt := secret, noon
		replicas := []keyring{secret, secret, secret}
		did := map[step]int{}
		for now := noon; now.Before(noon.Add(5 * 365 * day)); now = now.Add(time.Duration(r.Int64N(int64(6 * day)))) {
			for i := range replicas {
				if r.IntN(3) == 0 {
					replicas[i] = secret
				}
				if replicas[i].serving.ValidAt(now) == nil && !told.trusts(replicas[i].serving.Leaf, now) {
					t.Fatalf("seed %d, %s: replica %d serves what nobody trusts, after %v", seed, now, i, did)
				}
			}
			known := now.Sub(toldAt)
			if !bytes.Equal(told.bundle(), secret.bundle()) {
				known = -1
				if r.IntN(2) == 0 {
					told, toldAt = secret, now
				}
			}
			s := secret.step(now, known, p)
			did[s]++
			if s == stepKeep {
				continue
			}
			secret = taken(t, secret, s, now, p)
			if !secret.works(now, p) {
				t.Fatalf("seed %d, %s: %s has left a key ring that does not work", seed, now, s)
			}
		}
		if did[stepCreate] > 0 || did[stepPromote] < 5 || did[stepIssue] < 10 || did[stepForget] < 3 {
			t.Errorf("seed %d: did %v in five years", seed, did)
		}
		if len(secret.trusted) > 3 {
			t.Errorf("seed %d: %d authorities are trusted", seed, len(secret.trusted))
		}
	}
}

func TestPair_ReplacesOnlyWhatIsNoBetter_H4(t *testing.T) {
	p := testPolicy()
	good := taken(t, keyring{}, stepCreate, noon, p).serving
	newer := taken(t, keyring{}, stepCreate, noon.Add(day), p).serving
	old := taken(t, keyring{}, stepCreate, noon.Add(-200*day), p).serving
	older := taken(t, keyring{}, stepCreate, noon.Add(-300*day), p).serving
	future := taken(t, keyring{}, stepCreate, noon.Add(9*day), p).serving
	for _, c := range []struct {
		name        string
		have, found *keypair.Pair
		want        bool
	}{
		{"the first", nil, good, true},
		{"none", good, nil, false},
		{"the same", good, good, false},
		{"another", good, newer, true},
		{"another that ends before", newer, good, true},
		{"an expired one for a good one", good, old, false},
		{"one of tomorrow for a good one", good, future, false},
		{"a good one for an expired one", old, good, true},
		{"an expired one for another", older, old, true},
		{"an expired one for none", nil, old, true},
	} {
		if got := keypair.Replaces(c.have, c.found, noon.Add(2*day)); got != c.want {
			t.Errorf("%s: replaces = %v, want %v", c.name, got, c.want)
		}
	}
}
