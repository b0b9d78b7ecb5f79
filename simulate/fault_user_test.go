// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

// Who plays the user reads and writes what is corrupted as it was, and what is
// corrupted again after that heals to what the user has written.
func TestServer_UserSeesNoCorruption(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		user, err := client.New(&rest.Config{Host: "http://simulated", Transport: w.Direct("user")}, w.Scheme, client.Options{})
		w.Must(err)
		w.Store(fixture.ConfigMap("a", "1"), fixture.NewWidget("a", "1"))
		w.Must(w.Corrupt(fixture.ConfigMaps, fixture.Key("a")))
		w.Must(w.Corrupt(fixture.Widgets, fixture.Key("a")))
		m, wid := fixture.ConfigMap("a", ""), fixture.NewWidget("a", "")
		w.Must(user.Get(t.Context(), fixture.Key("a"), m))
		w.Must(user.Get(t.Context(), fixture.Key("a"), wid))
		if m.Data["v"] != "1" || wid.Spec.Value != "1" {
			t.Errorf("the user gets %v and %v, want what was there before", m.Data, wid.Spec)
		}
		for listed, err := range client.List[*corev1.ConfigMap](context.Background(), user, client.InNamespace("ns")) {
			if w.Must(err); listed.Name == "a" && listed.Data["v"] != "1" {
				t.Errorf("the user lists %v, want what was there before", listed.Data)
			}
		}
		m.Data["v"] = "2"
		w.Must(user.Update(t.Context(), m))
		w.Must(w.Corrupt(fixture.ConfigMaps, fixture.Key("a")))
		w.Heal()
		w.Must(user.Get(t.Context(), fixture.Key("a"), m))
		if m.Data["v"] != "2" {
			t.Errorf("what the user wrote over the corruption heals to %v, want 2", m.Data)
		}
		w.Must(w.Corrupt(fixture.ConfigMaps, fixture.Key("a")))
		w.Must(user.Delete(t.Context(), m))
		w.Must(user.Create(t.Context(), fixture.ConfigMap("a", "3")))
		w.Must(w.Corrupt(fixture.ConfigMaps, fixture.Key("a")))
		w.Heal()
		w.Must(user.Get(t.Context(), fixture.Key("a"), m))
		if m.Data["v"] != "3" {
			t.Errorf("another object of the name heals to %v, want 3", m.Data)
		}
	})
}

// What a Rewind undoes is told with the version of what is there again.
func TestServer_UndoneChangeTellsTheVersionThatIsThere(t *testing.T) {
	told := &changes{}
	s := simulate.New(simulate.Options{Namespaces: []string{"ns"}, Tracer: told})
	for _, v := range []string{"1", "2"} {
		if _, err := s.Put(fixture.ConfigMap("a", v)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(fixture.ConfigMap("b", v)); err != nil {
			t.Fatal(err)
		}
	}
	before := told.all[len(told.all)-4]
	s.Rewind(2)
	last := told.all[len(told.all)-1]
	if last.Key.Name != "a" || !last.Undone || last.Version != before.Revision || last.Revision == last.Version {
		t.Errorf("told %+v, want that a is there at version %d again", last, before.Revision)
	}
}

type changes struct{ all []simulate.Change }

func (c *changes) Panicked(simulate.Request, any, []byte) {}

func (c *changes) Stored(change simulate.Change)          { c.all = append(c.all, change) }
func (*changes) Asked(simulate.Request)                   {}
func (*changes) Answering(simulate.Request)               {}
func (*changes) Answered(simulate.Request, int)           {}
func (*changes) Sending(simulate.Request, simulate.Event) {}

// A streaming list of a cache that lags behind what the store has kept is expired.
func TestServer_StreamingListOfACompactedPastIsExpired(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		w.Store(fixture.ConfigMap("a", "1"))
		w.LagTo(w.Revision())
		w.Store(fixture.ConfigMap("b", "1"))
		w.Compact()
		answer, err := (&http.Client{Transport: w.Config.Transport}).Get("http://simulated/api/v1/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=1")
		w.Must(err)
		defer answer.Body.Close()
		line, err := bufio.NewReader(answer.Body).ReadString('\n')
		if w.Must(err); !strings.Contains(line, `"type":"ERROR"`) || !strings.Contains(line, `"code":410`) {
			t.Errorf("got %s, want an ERROR with 410", line)
		}
	})
}

// A watch that opens while the cache has gone back shows all that follows once the cache has caught up.
func TestServer_WatchOfACacheThatWentBackMissesNothing(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		before := w.Revision()
		w.Store(fixture.ConfigMap("a", "1"))
		w.Store(fixture.ConfigMap("b", "1"))
		w.LagTo(before)
		answer, err := (&http.Client{Transport: w.Config.Transport}).Get(fmt.Sprint("http://simulated/api/v1/configmaps?watch=true&resourceVersion=", before))
		w.Must(err)
		defer answer.Body.Close()
		w.Store(fixture.ConfigMap("c", "1"))
		w.CatchUp()
		events := bufio.NewReader(answer.Body)
		for _, name := range []string{"a", "b", "c"} {
			line, err := events.ReadString('\n')
			if w.Must(err); !strings.Contains(line, `"name":"`+name+`"`) {
				t.Errorf("got %s, want the event of %s", line, name)
			}
		}
	})
}
