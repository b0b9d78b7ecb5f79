// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/resource/builtin"
)

// convertPath is the path of conversions, as in kubebuilder.
const convertPath = "/convert"

// bodiesAtOnce bodies of the largest size can be read at the same time.
const bodiesAtOnce = 16

// Server serves webhooks. Create it with New, register functions with Validate, Mutate
// and Convert, and add it to a manager or call Run.
type Server struct {
	opts    Options
	scheme  *runtime.Scheme
	held    *keypair.Holder
	managed *managed            // nil: certificates come from files
	budget  *semaphore.Weighted // bytes of bodies being read
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

// New returns a webhook server for the kinds of scheme; nil means those of package
// resource/builtin.
// cfg is needed only with Options.Managed. New opens no port and starts nothing. Err
// and Run report invalid options.
func New(cfg *rest.Config, scheme *runtime.Scheme, opts Options) *Server {
	s := &Server{
		scheme:  scheme,
		held:    &keypair.Holder{},
		started: make(chan struct{}),
		listen:  simhook.Listen,
	}
	err := opts.complete()
	if scheme == nil {
		s.scheme = runtime.NewScheme()
		err = errors.Join(err, builtin.AddToScheme(s.scheme))
	}
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

// Name returns the name of the server in a manager.
func (s *Server) Name() string { return "webhook server" }

// Err returns the misuse so far; nil: none.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.mu.misuse...)
}

// Started returns a channel that is closed when the port is open. The certificate may
// come later; see Check.
func (s *Server) Started() <-chan struct{} { return s.started }

// Check returns why webhooks cannot be served now: the server does not run, has no
// valid certificate, or, with Managed, has not set the bundle in every target yet.
// Targets that cannot be set without a change by an administrator, because they may not
// be written or have no webhook of this server, do not count; Snapshot lists them. Nil:
// webhooks can be served. Check sends no request and does not block.
func (s *Server) Check(context.Context) error {
	if s.Addr() == "" {
		return errors.New("the port is not open")
	}
	if err := s.held.Check(time.Now()); err != nil || s.managed == nil {
		return err
	}
	return s.managed.pending()
}

// Addr returns the address on which the server listens or has listened, such as
// "[::]:9443". Empty: not yet.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.addr
}

// Converts reports whether the server converts a kind. A program must not wait for the
// sync of such a kind before it lets this server receive requests: that would deadlock.
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

// kindOf returns the single kind of a Go type.
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
		return schema.GroupVersionKind{}, fmt.Errorf("type %v is not in the scheme; call AddToScheme of its package", t)
	case len(kinds) > 1:
		return schema.GroupVersionKind{}, fmt.Errorf("type %v is registered for %d kinds in the scheme; register it for one", t, len(kinds))
	}
	return kinds[0], nil
}

// place returns the kind of a type and the path for a verb; an empty kind accepts all.
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

// register serves answer at path.
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
	h.took.Bounds = latencyBounds[:]
	h.mu.codes = map[int]int64{http.StatusOK: 0, http.StatusInternalServerError: 0} // exposed before they occur
	s.mu.hooks = append(s.mu.hooks, h)
}

// registerConversion makes a kind convertible.
func (s *Server) registerConversion(kind schema.GroupKind, versions map[string]version) error {
	if s.Converts(kind) {
		return fmt.Errorf("kind %s is already registered", kind)
	}
	s.mu.Lock()
	first := len(s.mu.kinds) == 0
	kinds := conversions{kind: versions}
	maps.Copy(kinds, s.mu.kinds)
	s.mu.kinds = kinds
	s.mu.Unlock()
	if first {
		s.register(convertPath, PurposeConvert, schema.GroupVersionKind{}, conversion(s.kinds))
	}
	return nil
}

// kinds returns the kinds that are converted. The result must not be modified.
func (s *Server) kinds() conversions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.kinds
}

// find returns the hook at path; nil: none.
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
