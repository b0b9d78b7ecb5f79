// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/simhook"
)

// convertPath is where conversions are asked for, as kubebuilder has it.
const convertPath = "/convert"

// bodiesAtOnce of the largest size are read at the same time.
const bodiesAtOnce = 16

// Server serves webhooks. Make it with New, give it functions by Validate, Mutate
// and Convert, and have a manager run it, or call Run.
type Server struct {
	opts    Options
	scheme  *runtime.Scheme
	held    *keypair.Holder
	managed *managed            // nil: certificates come from files
	budget  *semaphore.Weighted // bytes that are read at once
	room    *decoding
	started chan struct{}
	listen  func(ctx context.Context, address string) (net.Listener, error)

	mu struct {
		sync.Mutex
		log      logr.Logger
		misuse   []error
		hooks    []*served
		kinds    conversions
		ran      bool
		addr     string
		stopping time.Time // zero: no stop has begun
	}
}

// New returns a server of webhooks for the kinds of scheme; nil is client-go's. cfg
// is needed by Options.Managed alone. It opens no port and starts nothing. Misuse of
// opts is what Err and Run return.
func New(cfg *rest.Config, scheme *runtime.Scheme, opts Options) *Server {
	s := &Server{
		scheme:  scheme,
		held:    &keypair.Holder{},
		started: make(chan struct{}),
		listen:  simhook.Listen,
	}
	if scheme == nil {
		s.scheme = clientgoscheme.Scheme
	}
	err := opts.complete()
	s.opts, s.mu.log = opts, opts.Logger
	s.budget = semaphore.NewWeighted(bodiesAtOnce * opts.MaxBody)
	s.room = newDecoding(opts.MaxDecoded)
	s.mu.kinds = conversions{}
	if err == nil && opts.Managed != nil {
		s.managed, err = newManaged(*opts.Managed, s.held, cfg)
	}
	if err != nil {
		s.remember(fmt.Errorf("make webhook server: %w", err))
	}
	return s
}

func (s *Server) callers() callers { return callers{s.opts.ClientCAs, s.opts.ClientNames} }

// Name is how a manager calls the server.
func (s *Server) Name() string { return "webhook server" }

// Err is the misuse that the server remembers; nil: none.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.mu.misuse...)
}

// Started is closed when the port is open. A certificate may come later; Check says
// whether there is one.
func (s *Server) Started() <-chan struct{} { return s.started }

// Check says why no webhook can be served now: the server does not run, or has no
// valid certificate, or, with Managed, has not told all who are to trust it yet. Who
// cannot be told until somebody changes something, since it may not be written or has
// no webhook of the server, is not waited for; Snapshot names it. Nil: webhooks can be
// served. It asks nobody and does not block.
func (s *Server) Check(context.Context) error {
	if s.Addr() == "" {
		return errors.New("the port is not open")
	}
	if err := s.held.Check(time.Now()); err != nil || s.managed == nil {
		return err
	}
	return s.managed.pending()
}

// Addr is where the server listens or has listened, such as "[::]:9443". Empty: not
// yet.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.addr
}

// Converts reports whether the server converts a kind. Whoever waits until objects of
// it are synced before it lets this server be asked waits for ever.
func (s *Server) Converts(kind schema.GroupKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.kinds[kind] != nil
}

func (s *Server) remember(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.misuse = append(s.mu.misuse, err)
}

func (s *Server) logger() logr.Logger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.log
}

// kindOf is the one kind that a Go type stands for.
func (s *Server) kindOf(t reflect.Type) (schema.GroupVersionKind, error) {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return schema.GroupVersionKind{}, fmt.Errorf("%v is no pointer to a struct; give the Go type of a kind, such as *corev1.Pod", t)
	}
	obj, ok := reflect.New(t.Elem()).Interface().(runtime.Object)
	if !ok {
		return schema.GroupVersionKind{}, fmt.Errorf("%v is no Go type of a kind", t)
	}
	kinds, _, err := s.scheme.ObjectKinds(obj)
	switch {
	case err != nil:
		return schema.GroupVersionKind{}, fmt.Errorf("type %v is not in the scheme; call AddToScheme of its package: %w", t, err)
	case len(kinds) > 1:
		return schema.GroupVersionKind{}, fmt.Errorf("type %v is registered for %d kinds in the scheme; register it for one", t, len(kinds))
	}
	return kinds[0], nil
}

// place finds the kind of a type and the path for a verb; an empty kind takes all.
func (s *Server) place(verb, path string, t reflect.Type, nothing bool) (schema.GroupVersionKind, string, error) {
	var kind schema.GroupVersionKind
	if nothing {
		return kind, path, errors.New("the function is nil")
	}
	if t == reflect.TypeFor[*unstructured.Unstructured]() {
		if path == "" {
			return kind, path, errors.New("the path is empty; unstructured objects are of any kind, so name it")
		}
	} else {
		var err error
		if kind, err = s.kindOf(t); err != nil {
			return kind, path, err
		}
	}
	if path == "" {
		path = fmt.Sprintf("/%s-%s-%s-%s", verb, strings.ReplaceAll(kind.Group, ".", "-"), kind.Version, strings.ToLower(kind.Kind))
	}
	return kind, path, nil
}

// register has path answered by answer.
func (s *Server) register(path string, purpose Purpose, kind schema.GroupVersionKind, answer hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch {
	case !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?# "):
		err = fmt.Errorf("%s at path %q: a path begins with a slash and has no query, such as /%s-pods", purpose, path, purpose)
	case slices.ContainsFunc(s.mu.hooks, func(h *served) bool { return h.path == path }):
		err = fmt.Errorf("%s at path %q: there is already a webhook at that path; give each its own path", purpose, path)
	}
	if err != nil {
		s.mu.misuse = append(s.mu.misuse, err)
		return
	}
	h := &served{path: path, purpose: purpose, kind: kind, answer: answer}
	h.mu.codes = map[int]int64{http.StatusOK: 0, http.StatusInternalServerError: 0} // shown before they happen
	s.mu.hooks = append(s.mu.hooks, h)
}

// registerConversion has a kind converted.
func (s *Server) registerConversion(kind schema.GroupKind, versions map[string]version) error {
	if s.Converts(kind) {
		return fmt.Errorf("kind %s is already registered", kind)
	}
	s.mu.Lock()
	first := len(s.mu.kinds) == 0
	kinds := conversions{kind: versions}
	for other, its := range s.mu.kinds {
		kinds[other] = its
	}
	s.mu.kinds = kinds
	s.mu.Unlock()
	if first {
		s.register(convertPath, PurposeConvert, schema.GroupVersionKind{}, conversion(s.kinds))
	}
	return nil
}

// kinds that are converted; nobody changes what is returned.
func (s *Server) kinds() conversions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.kinds
}

// find returns who answers at path; nil: nobody.
func (s *Server) find(path string) *served {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.mu.hooks {
		if h.path == path {
			return h
		}
	}
	return nil
}
