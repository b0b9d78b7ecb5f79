// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// The actions on a controller or one of its keys.
const (
	ActionRun          = "run"
	ActionResetBackoff = "reset-backoff"
	ActionPause        = "pause"
	ActionResume       = "resume"
)

const (
	mostForm = 16 << 10 // bytes of a request
	mostKey  = 1 << 10  // bytes of a key
)

// Action is what a person wants of a program.
type Action struct {
	Name, Controller string
	// Key as in the logs. Empty: the controller as a whole.
	Key string
	// By is who wants it.
	By string
}

// What returns what the action is about, for texts.
func (a Action) What() string {
	if a.Key == "" {
		return fmt.Sprintf("the controller %q", a.Controller)
	}
	return fmt.Sprintf("the key %q of the controller %q", a.Key, a.Controller)
}

// Done is what an action has done: POST controllers/NAME/ACTION.
type Done struct {
	Version    string `json:"version"`
	Action     string `json:"action"`
	Controller string `json:"controller"`
	Key        string `json:"key,omitempty"`
	// Changed: something is not as it was before.
	Changed bool   `json:"changed"`
	Text    string `json:"text"`
}

// Actor is a Program that takes actions. Act may wait for the API server. It refuses actions with an
// error that has a status.
type Actor interface {
	Program
	Act(ctx context.Context, a Action) (Done, error)
}

// Controllable is a Controlled that takes actions. *reconcile.Controller is one.
type Controllable interface {
	Controlled
	SetPauses(p reconcile.Pauses)
	RunNow(key, by string) bool
	ResetBackoff(key, by string) bool
}

// Refused returns an error with a status of HTTP.
func Refused(status int, format string, args ...any) error {
	return &queryError{status, fmt.Sprintf(format, args...)}
}

type userKey struct{}

// WithUser returns ctx with the user of a request.
func WithUser(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, userKey{}, name)
}

// UserOf returns the user of a request. Without a guard the name of a user is not known.
func UserOf(ctx context.Context) string {
	name, _ := ctx.Value(userKey{}).(string)
	return cmp.Or(name, "a user of this machine")
}

// ActionOf returns the action of a POST whose path has the name and the action.
func ActionOf(w http.ResponseWriter, r *http.Request) (Action, error) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := r.ParseForm(); err != nil {
		return Action{}, bad("read the form: %v", err)
	}
	a := Action{Name: r.PathValue("action"), Controller: r.PathValue("name"), Key: r.FormValue("key"), By: UserOf(r.Context())}
	actions := []string{ActionRun, ActionResetBackoff, ActionPause, ActionResume}
	switch {
	case !slices.Contains(actions, a.Name):
		return a, Refused(http.StatusNotFound, "the action %q is none of %s", a.Name, strings.Join(actions, ", "))
	case len(a.Key) > mostKey:
		return a, bad("the key has %d bytes; give at most %d", len(a.Key), mostKey)
	case a.Key == "" && (a.Name == ActionRun || a.Name == ActionResetBackoff):
		return a, bad("%s is for one key; give it as ?key=NAMESPACE/NAME", a.Name)
	}
	return a, nil
}

// Actions takes actions below Path, and answers with what they have done as JSON.
func Actions(p Actor) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path+"controllers/{name}/{action}", func(w http.ResponseWriter, r *http.Request) {
		a, err := ActionOf(w, r)
		if err != nil {
			answer(w, nil, err)
			return
		}
		done, err := p.Act(r.Context(), a)
		answer(w, done, err)
	})
	return mux
}

// Known reports whether a controller has a key: in its queue, with recorded runs, or as the name of an
// object in the cache of one of its sources.
func Known(p Program, c Controlled, key string) bool {
	if len(c.RunsOf(key)) > 0 || slices.ContainsFunc(c.QueuedKeys(), func(k workqueue.KeyState[string]) bool { return k.Key == key }) {
		return true
	}
	obj, _ := Cached(p, c, key)
	return obj != nil
}

// Cached returns the object that a key names, from the cache of a source; nil: there is none.
func Cached(p Program, c Controlled, key string) (kube.Object, schema.GroupVersionKind) {
	namespace, name, found := strings.Cut(key, "/")
	if !found {
		namespace, name = "", key
	}
	for _, s := range c.Snapshot().Sources {
		if s.Kind.Kind == "" || s.Owners.Kind != "" {
			continue
		}
		if obj, kind := p.Cached(s.Kind, source.Key{Namespace: namespace, Name: name}); obj != nil {
			return obj, kind
		}
	}
	return nil, schema.GroupVersionKind{}
}
