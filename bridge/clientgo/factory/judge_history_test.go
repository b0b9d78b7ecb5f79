// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// state is one state of an object, from a notification or from etcd.
type state struct {
	revision int64
	uid      string
	value    string
	gone     bool // the revision deleted it
}

// etcdHistory is the history of the objects under a prefix, by revision, from a
// separate watch of etcd.
type etcdHistory struct {
	mu struct {
		sync.Mutex
		reached int64
		keys    map[string][]state
	}
}

// watchEtcd follows the prefix from the first revision until ctx ends,
// bypassing the API server.
func watchEtcd(ctx context.Context, base string, client *http.Client, prefix string, h *etcdHistory) error {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	end := prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1)
	body := fmt.Sprintf(`{"create_request":{"key":%q,"range_end":%q,"start_revision":"1"}}`, encode(prefix), encode(end))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v3/watch", bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	answer, err := client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	for frames := json.NewDecoder(answer.Body); ; {
		var f frame
		err := frames.Decode(&f)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch etcd: %w", err)
		}
		if f.Error != nil || f.Result.Canceled {
			return fmt.Errorf("watch etcd: it ended at revision %s: %v", f.Result.Header.Revision, f.Error)
		}
		if err := h.take(f, prefix); err != nil {
			return err
		}
	}
}

// frame is one answer of etcd's watch through its HTTP gateway.
type frame struct {
	Error  any
	Result struct {
		Canceled bool
		Header   struct{ Revision string }
		Events   []struct {
			Type string
			KV   struct {
				Key, Value  []byte
				ModRevision string `json:"mod_revision"`
			}
		}
	}
}

func (h *etcdHistory) take(f frame, prefix string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range f.Result.Events {
		revision, err := strconv.ParseInt(e.KV.ModRevision, 10, 64)
		if err != nil {
			return err
		}
		s := state{revision: revision, gone: e.Type == "DELETE"}
		if !s.gone {
			obj, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(e.KV.Value, nil, nil)
			if err != nil {
				return fmt.Errorf("decode %s at revision %d: %w", e.KV.Key, revision, err)
			}
			m := obj.(*corev1.ConfigMap)
			s.uid, s.value = string(m.UID), m.Data["v"]
		}
		key := strings.TrimPrefix(string(e.KV.Key), prefix)
		if h.mu.keys == nil {
			h.mu.keys = make(map[string][]state)
		}
		h.mu.keys[key] = append(h.mu.keys[key], s)
		h.mu.reached = max(h.mu.reached, revision)
	}
	return nil
}

// reached returns the newest revision of the prefix.
func (h *etcdHistory) reached() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.reached
}

func (h *etcdHistory) of(key string) []state {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.mu.keys[key])
}

// present returns the present objects.
func (h *etcdHistory) present() map[string]state {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]state)
	for key, states := range h.mu.keys {
		if last := states[len(states)-1]; !last.gone {
			out[key] = last
		}
	}
	return out
}

// note is one notification of a handler.
type note struct {
	key      string
	old, new *state // nil: none
	unseen   bool   // old is the last known state, not the final one
}

// witness records what one handler receives.
type witness struct {
	name string
	// every: the handler gets each event; again: lists redeliver unchanged
	// objects.
	every, again bool
	mu           struct {
		sync.Mutex
		notes []note
		holds map[string]state
	}
}

func (w *witness) hear(n note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.notes = append(w.mu.notes, n)
	if w.mu.holds == nil {
		w.mu.holds = make(map[string]state)
	}
	if delete(w.mu.holds, n.key); n.new != nil {
		w.mu.holds[n.key] = *n.new
	}
}

func (w *witness) present() map[string]state {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[string]state, len(w.mu.holds))
	for key, s := range w.mu.holds {
		out[key] = s
	}
	return out
}

// judge compares what w received with the history. Up to revision calm the
// watch was undisturbed, so nothing may be missing there. It returns the
// errors, the number of notifications, and how many repeated a state.
func (w *witness) judge(h *etcdHistory, calm int64) (wrong []string, told, repeated int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	told = len(w.mu.notes)
	had, passed := make(map[string]state), make(map[string]int64)
	for i, n := range w.mu.notes {
		before, has := had[n.key]
		fail := func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf("%s: notification %d of %s: %s", w.name, i, n.key, fmt.Sprintf(format, args...)))
		}
		states := h.of(n.key)
		switch {
		case n.old != nil && !has:
			fail("%+v ends or changes, but it was not there", *n.old)
		case n.old == nil && has:
			fail("%+v is added, but %+v is there", *n.new, before)
		}
		if n.new != nil {
			w.judgeNew(n, states, passed[n.key], before, has, calm, fail)
			if has && n.new.revision == before.revision {
				repeated++
			}
			had[n.key], passed[n.key] = *n.new, n.new.revision
			continue
		}
		end := slices.IndexFunc(states, func(s state) bool { return s.gone && s.revision > before.revision })
		switch {
		case end < 0:
			fail("it is told to be gone, and etcd has it since %d", before.revision)
		case n.unseen || !w.every:
			if *n.old != before {
				fail("it ends as %+v, and the handler was last given %+v", *n.old, before)
			}
		default:
			last := states[end-1]
			if n.old.uid != last.uid || n.old.value != last.value || n.old.revision != last.revision && n.old.revision != states[end].revision {
				fail("the final state is %+v, in etcd it was %+v, deleted at %d", *n.old, last, states[end].revision)
			}
		}
		if end >= 0 {
			passed[n.key] = states[end].revision
		}
		delete(had, n.key)
	}
	return wrong, told, repeated
}

func (w *witness) judgeNew(n note, states []state, passed int64, before state, has bool, calm int64, fail func(string, ...any)) {
	at := slices.Index(states, *n.new)
	if at < 0 {
		fail("%+v was never in etcd", *n.new)
		return
	}
	if n.new.revision < passed {
		fail("it goes back from revision %d to %d", passed, n.new.revision)
	}
	if !has {
		return
	}
	switch {
	case n.old == nil:
	case *n.old != before:
		fail("old is %+v, and the handler was last given %+v", *n.old, before)
	case n.new.uid != before.uid:
		fail("%+v and %+v are two objects, and an update joins them", before, *n.new)
	case n.new.revision == before.revision && !w.again:
		fail("%+v is given again, and nobody asked for that", *n.new)
	case n.new.revision == before.revision: // a list has it unchanged
	case w.every && n.new.revision <= calm && states[at-1] != before:
		fail("%+v was left out while nothing disturbed the watch", states[at-1])
	}
}
