// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
)

// trickle is a body of which one byte comes each so often.
type trickle struct {
	text  io.Reader
	every time.Duration
	over  chan struct{}
	close func()
}

func trickling(text string, every time.Duration) *trickle {
	over := make(chan struct{})
	return &trickle{text: strings.NewReader(text), every: every, over: over, close: sync.OnceFunc(func() { close(over) })}
}

func (b *trickle) Read(p []byte) (int, error) {
	select {
	case <-time.After(b.every):
		return b.text.Read(p[:1])
	case <-b.over:
		return 0, io.ErrClosedPipe
	}
}

func (b *trickle) Close() error {
	b.close()
	return nil
}

func listOfConfigMaps(more, items string) string {
	return fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[%s]}`, more, items)
}

const oneConfigMap = `{"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"1"}}`

// A list that is kept from ending is given up and asked for otherwise. Its state
// says why it takes so long.
func TestInformer_ListThatDoesNotEndIsGivenUp_A19(t *testing.T) {
	page := func(text func(*http.Request) string) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) {
			return answered(req, 200, "application/json", strings.NewReader(text(req))), nil
		}
	}
	count := 0
	for name, c := range map[string]struct {
		answer   func(*http.Request) (*http.Response, error)
		after    time.Duration
		says     string
		requests int // in an hour
	}{
		"a byte a minute": {func(req *http.Request) (*http.Response, error) {
			answer := answered(req, 200, "application/json", nil)
			answer.Body = trickling(listOfConfigMaps("", strings.Repeat(" ", 10_000)), time.Minute)
			return answer, nil
		}, 6 * time.Minute, "did not complete a page", 15},
		"a token that leads to itself": {page(func(*http.Request) string { return listOfConfigMaps("x", oneConfigMap) }), time.Minute, "do not advance", 500},
		"a token that leads to itself with other objects": {page(func(*http.Request) string {
			count++
			return listOfConfigMaps("x", strings.Replace(oneConfigMap, `"name":"`, fmt.Sprintf(`"name":"n%d`, count), 1))
		}), time.Minute, "do not advance", 500},
		"empty pages without end": {page(func(*http.Request) string {
			count++
			return listOfConfigMaps(fmt.Sprint(count), "")
		}), time.Minute, "are empty", 20_000},
		"the same page under new tokens": {page(func(*http.Request) string {
			count++
			return listOfConfigMaps(fmt.Sprint(count), oneConfigMap)
		}), time.Minute, "do not advance", 500},
	} {
		t.Run(name, func(t *testing.T) {
			opts := informer.Options{PagedLists: true, PageSize: 4, Audit: time.Hour}
			simulated(t, opts, func(t *testing.T, w *world) {
				m := w.interposed(opts)
				w.Store(configMap("a", "1"))
				i := informer.For[cmap](w.factory)
				asked := 0
				meddle := func(req *http.Request) (*http.Response, error) {
					if isWatch(req) || !isOf(req, "configmaps") {
						return nil, nil
					}
					asked++
					return c.answer(req)
				}
				m.meddle(meddle)
				start(w)
				if s := stateOf(i); s.State == state.Listing && s.Reason == "" {
					t.Errorf("got %s, want a reason", s)
				}
				pass(c.after)
				stands(t, i, state.Stale, c.says)
				pass(time.Hour)
				if asked > c.requests {
					t.Errorf("%d requests in an hour, want %d at most", asked, c.requests)
				}
				m.meddle(nil)
				pass(6 * time.Minute)
				holds(t, i, "a=1", "lists end again, and none was asked for")
				stands(t, i, state.Live, "")
				// The lists of an audit come to their end too.
				asked = 0
				m.meddle(meddle)
				pass(5 * time.Hour)
				s := stateOf(i)
				if asked == 0 || s.Audits.Abandoned == 0 || asked > 10*c.requests {
					t.Errorf("%d requests and %+v in five hours of audits, want some that are given up", asked, s.Audits)
				}
				stands(t, i, state.Live, "")
			})
		})
	}
}

// A kind that changes all the time keeps no streaming list from its end.
func TestInformer_BusyStreamingListIsReplacedByPages_A19(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.NoEndBookmark(configMaps, true)
		i := informer.For[cmap](w.factory)
		start(w)
		for n := range 30 {
			w.Store(configMap("a", fmt.Sprint(n)), configMap(fmt.Sprint("new-", n), "1"))
			pass(5 * time.Second)
			if s := stateOf(i); s.State != state.Live && s.Reason == "" {
				t.Fatalf("got %s, want a reason", s)
			}
		}
		stands(t, i, state.Live, "")
		if got := held(i); !strings.Contains(got, "a=29") {
			t.Errorf("got %q, want a=29: the list has not come to its end after two and a half minutes", got)
		}
		if s := stateOf(i); s.StreamFallbacks != 1 || w.streams(configMaps) != 1 {
			t.Errorf("%d fall backs after %d streaming lists, want one of each", s.StreamFallbacks, w.streams(configMaps))
		}
	})
}

// Where streaming lists are not known, pages are read at once, and that is no error.
func TestInformer_SourceWithoutStreamingListsIsReadByPages_A21(t *testing.T) {
	for name, answer := range map[string]func(*http.Request) *http.Response{
		"it refuses them": func(req *http.Request) *http.Response {
			status := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"sendInitialEvents is forbidden"}`
			return answered(req, 422, "application/json", strings.NewReader(status))
		},
		"it ends them at once": func(req *http.Request) *http.Response {
			return answered(req, 200, "application/json", strings.NewReader(""))
		},
		"it answers with something else": func(req *http.Request) *http.Response {
			return answered(req, 200, "text/plain", strings.NewReader("what?"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				m := w.interposed(informer.Options{})
				w.Store(configMap("a", "1"))
				i := informer.For[cmap](w.factory)
				streams := 0
				m.meddle(func(req *http.Request) (*http.Response, error) {
					if req.URL.Query().Get("sendInitialEvents") != "true" {
						return nil, nil
					}
					streams++
					return answer(req), nil
				})
				start(w)
				holds(t, i, "a=1", "it has not synced within a second")
				stands(t, i, state.Live, "")
				if n := w.logged(""); n != 0 || streams != 1 {
					t.Errorf("%d streaming lists and log %q, want one and no line", streams, w.journal.lines)
				}
				if s := stateOf(i); s.StreamFallbacks != 1 || s.PagedUntil.IsZero() {
					t.Errorf("got %d fall backs, pages until %s; want one, and an hour of pages", s.StreamFallbacks, s.PagedUntil)
				}
			})
		})
	}
}
