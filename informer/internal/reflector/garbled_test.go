// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/testing/hostile"
	"github.com/flyball-dev/flyball/kube"
)

// textWatch is a ListerWatcher whose watches are texts. The first list has a@1;
// later lists have what each watch lost.
type textWatch struct {
	mu      sync.Mutex
	asked   []string
	watches []string      // after the last, a watch is silent
	gap     time.Duration // before each line
	decoder *restclient.Decoder
}

func (w *textWatch) List(context.Context, listwatch.ListOptions) (listwatch.Page[kube.Object], error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, "list")
	if len(w.asked) == 1 {
		return *pageOf("10", "", item("a", "1")).page, nil
	}
	return *pageOf("20", "", item("a", "12"), item("b", "11"), item("c", "13")).page, nil
}

func (w *textWatch) Watch(ctx context.Context, o listwatch.WatchOptions) (listwatch.Stream[kube.Object], error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, "watch "+o.ResourceVersion)
	text := ""
	if len(w.watches) > 0 {
		text, w.watches = w.watches[0], w.watches[1:]
	}
	pr, pw := io.Pipe()
	context.AfterFunc(ctx, func() { _ = pw.CloseWithError(context.Cause(ctx)) })
	go func() {
		for line := range strings.Lines(text) {
			if !fixture.Pause(ctx, w.gap) {
				return
			}
			_, _ = io.WriteString(pw, line)
		}
	}()
	return restclient.NewStream(ctx, pr, false, w.decoder, nil), nil
}

func configMapEvent(typ, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"resourceVersion":%q}}}`+"\n", typ, name, version)
}

// A garbled frame affects no other: those before and after it count at once,
// and a list makes up for what it may have hidden.
func TestReflector_GarbageInAWatchCostsNoGoodObject_B12(t *testing.T) {
	decoder, err := restclient.NewDecoder(reflect.TypeFor[*corev1.ConfigMap](), corev1.SchemeGroupVersion.WithKind("ConfigMap"), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, garbage := range hostile.Garbage() {
		t.Run(garbage.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lw := &textWatch{decoder: decoder, watches: []string{
					configMapEvent("ADDED", "b", "11") + string(garbage.Text) + "\n" + configMapEvent("ADDED", "c", "13"),
				}}
				m, current := reflectFor(t, 2*time.Second, lw, Options{PagedLists: true})
				if got, want := m.held(), "a@12 b@11 c@13"; got != want {
					t.Errorf("got %q, want %q: %s", got, want, m.history())
				}
				if got := m.history(); !strings.Contains(got, "c@13") || strings.Index(got, "c@13") > strings.LastIndex(got, "list") {
					t.Errorf("%s: want c by the watch, before any list", got)
				}
				if got, want := strings.Join(lw.asked, ", "), "list, watch 10, list, watch 20"; got != want {
					t.Errorf("asked %q, want %q: a list makes up for what was garbled", got, want)
				}
				if current.State != state.Live {
					t.Errorf("state %+v, want Live", current)
				}
			})
		})
	}
}

// Repeated garbage leads to one list a minute, and garbage alone to another
// watch.
func TestReflector_GarbageLeadsToFewLists_B12(t *testing.T) {
	decoder, err := restclient.NewDecoder(reflect.TypeFor[*corev1.ConfigMap](), corev1.SchemeGroupVersion.WithKind("ConfigMap"), false)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		lw := &textWatch{decoder: decoder, gap: 100 * time.Millisecond}
		text := strings.Builder{}
		for i := range 5000 {
			text.WriteString("<html>\n" + configMapEvent("MODIFIED", "a", fmt.Sprint(100+i)))
		}
		for range 100 {
			lw.watches = append(lw.watches, text.String())
		}
		_, current := reflectFor(t, 5*time.Minute, lw, Options{PagedLists: true})
		if lists := current.Relists[steps.RelistGarbled]; lists < 3 || lists > 5 {
			t.Errorf("%d lists in five minutes of garbage between good events, want about one a minute", lists)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		lw := &textWatch{decoder: decoder, watches: []string{"<html>502</html>\n"}}
		m, _ := reflectFor(t, 10*time.Second, lw, Options{PagedLists: true})
		if got := strings.Join(lw.asked, ", "); !strings.HasPrefix(got, "list, watch 10, watch 10") {
			t.Errorf("asked %q, held %q; want the watch again from its last version, since nothing followed", got, m.held())
		}
	})
}
