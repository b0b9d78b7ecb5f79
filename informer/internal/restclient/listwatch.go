// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/gate"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/answers"
	"github.com/flyball-dev/flyball/internal/ration"
)

const (
	ContentJSON     = "application/json"
	ContentProtobuf = "application/vnd.kubernetes.protobuf"
)

// Server is a Kubernetes API server by HTTP, with the credentials of a
// rest.Config. Safe for concurrent use.
type Server struct {
	client    *http.Client // has no timeout: a watch lives long
	base      *url.URL
	userAgent string
	timeout   time.Duration // of the configuration, for what is not a watch; 0: none

	Gate     *gate.Gate
	Streams  streamMemory
	warnings warnings
	refused  atomic.Bool // the last answer was 401
	givenUp  usedConns
}

// NewServer is the server of cfg, reached by client, with room for so many
// lists at a time.
func NewServer(cfg *rest.Config, client *http.Client, lists int) (*Server, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion = "", nil
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("read server address %q: %w", cfg.Host, err)
	}
	patient := *client
	patient.Timeout = 0
	return &Server{
		client:    &patient,
		base:      base,
		userAgent: cmp.Or(cfg.UserAgent, rest.DefaultKubernetesUserAgent()),
		timeout:   cfg.Timeout,
		Gate:      gate.NewGate(lists),
	}, nil
}

// Request is one GET.
type Request struct {
	Verb     string // in errors
	resource schema.GroupResource
	Path     string
	query    url.Values
	accept   string
}

// get sends r and returns an answer with status 200, whose body the caller
// closes. Any other is an *apierrors.StatusError. It passes the server's gate
// with the pass that ctx carries, or waits there for one, until ctx ends.
func (s *Server) get(ctx context.Context, r Request) (*http.Response, error) {
	p := gate.PassOf(ctx)
	aside := p != nil && r.Verb == gate.VerbDiscover
	if p == nil {
		var err error
		if p, err = s.Gate.Enter(ctx, gate.Ask{Rank: gate.RankOther, Kind: schema.GroupVersionKind{Group: r.group()}}, func(gate.Hold) {}); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Verb, err)
		}
		defer p.Done()
	}
	if !p.Begin() {
		return nil, gate.ErrHeld
	}
	answer, err := s.authorized(ctx, r)
	if err != nil {
		p.Replied(gate.Unanswered(ctx, err, aside), 0)
		return nil, err
	}
	s.warnings.tell(ctx, answer.Header)
	if answer.StatusCode == http.StatusOK {
		p.Replied(gate.Judged(answer, nil, aside), 0)
		return answer, nil
	}
	defer answer.Body.Close()
	err = ErrorOf(answer, r.Verb, r.resource)
	p.Replied(gate.Judged(answer, err, aside), gate.AskedToWait(err))
	return nil, err
}

// authorized sends r. The first 401 has the transport read its token anew, so
// r is sent a second time; when that is refused too, later ones are not.
func (s *Server) authorized(ctx context.Context, r Request) (*http.Response, error) {
	before := s.refused.Load()
	answer, err := s.send(ctx, r)
	if err == nil && answer.StatusCode == http.StatusUnauthorized && !before {
		_ = answer.Body.Close()
		answer, err = s.send(ctx, r)
	}
	if err == nil {
		s.refused.Store(answer.StatusCode == http.StatusUnauthorized)
	}
	return answer, err
}

func (s *Server) send(ctx context.Context, r Request) (*http.Response, error) {
	u := *s.base
	u.Path = strings.TrimSuffix(u.Path, "/") + "/" + r.Path
	u.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Verb, err)
	}
	req.Header.Set("Accept", r.accept)
	req.Header.Set("User-Agent", s.userAgent)
	if ctx.Value(elsewhereKey{}) != nil {
		// An HTTP/2 connection that watches hold open is not used again after this
		// request, so the one after it goes over another.
		utilnet.CloseIdleConnectionsFor(s.transport())
		req.Close = true
		req.Header.Set("Cache-Control", "no-cache")
	}
	return s.exchange(ctx, req)
}

// group is the API group that r goes to; empty: the core one, or none.
func (r Request) group() string {
	if parts := strings.Split(r.Path, "/"); len(parts) > 1 && parts[0] == "apis" {
		return parts[1]
	}
	return ""
}

// restListerWatcher lists and watches one kind in one scope.
type restListerWatcher[T base.Object] struct {
	server      *Server
	resolver    *Resolver
	of          Target
	scope       base.WatchScope
	managed     func() bool  // managedFields stay
	decoder     *Decoder[T]  // of a resource, its kind still to be set
	pageSize    atomic.Int64 // bytes of the last page, a guess at the next
	plainAnswer atomic.Bool  // the server refuses to give the metadata alone
}

// NewListerWatcher lists and watches what is given in scope on the server
// of resolver, as objects of type t. It sends nothing yet. managed is asked
// with each request whether managedFields stay; nil: they do not.
func NewListerWatcher[T base.Object](t reflect.Type, resolver *Resolver, of Target, scope base.WatchScope, managed func() bool) (*restListerWatcher[T], error) {
	if managed == nil {
		managed = func() bool { return false }
	}
	decoder, err := NewDecoder[T](t, of.Kind, false)
	if err != nil {
		return nil, err
	}
	return &restListerWatcher[T]{server: resolver.Server, resolver: resolver, of: of, scope: scope, managed: managed, decoder: decoder}, nil
}

func (lw *restListerWatcher[T]) List(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[T], error) {
	if lw.server.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lw.server.timeout)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := time.AfterFunc(AnswerWithin, func() { cancel(base.ErrSilent) })
	defer alarm.Stop()
	page, err := lw.list(ctx, opts, alarm)
	lw.server.distrust(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return listwatch.Page[T]{}, lw.errorf("list", err)
	}
	return page, nil
}

// errorf says what was being done to what.
func (lw *restListerWatcher[T]) errorf(verb string, err error) error {
	return fmt.Errorf("%s %s %s: %w", verb, lw.of.named().Kind, lw.scope, discreet(lw.of.named(), err))
}

func (lw *restListerWatcher[T]) list(ctx context.Context, opts listwatch.ListOptions, alarm *time.Timer) (listwatch.Page[T], error) {
	q := lw.selectors()
	if opts.Limit > 0 {
		q.Set("limit", strconv.FormatInt(opts.Limit, 10))
	}
	setIf(q, "continue", opts.Continue)
	setIf(q, "resourceVersion", opts.ResourceVersion)
	setIf(q, "resourceVersionMatch", opts.ResourceVersionMatch)
	limit, whole := int64(encoding.MaxFrame), opts.Limit == 0 || opts.ResourceVersion == "0"
	if whole {
		limit = encoding.MaxWholeList
	}
	// The body's reader keeps to the limit; the transport has it wait its turn.
	answer, decoder, err := lw.get(answers.WithLimit(ctx, limit+1), "list", q)
	if err != nil {
		return listwatch.Page[T]{}, err
	}
	defer answer.Body.Close()
	body, err := encoding.ReadBody(speaking{answer.Body, alarm, gate.PassOf(ctx)}, limit, lw.pageSize.Load())
	if err != nil {
		return listwatch.Page[T]{}, fmt.Errorf("read list: %w", err)
	}
	lw.pageSize.Store(int64(len(body)))
	decoded := int64(ration.Page)
	if whole {
		decoded = ration.Whole(int64(len(body)))
	}
	page, err := decoder.PageWithin(mediaType(answer), body, decoded)
	if err != nil {
		return listwatch.Page[T]{}, notAsExpected(answer, body, err)
	}
	return page, nil
}

// speaking puts an alarm off whenever something is read, and tells the gate.
type speaking struct {
	io.Reader
	alarm *time.Timer
	pass  *gate.Pass
}

func (s speaking) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.alarm.Reset(AnswerWithin)
	s.pass.Heard()
	return n, err
}

func (lw *restListerWatcher[T]) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[T], error) {
	q := lw.selectors()
	q.Set("watch", "true")
	q.Set("allowWatchBookmarks", "true")
	setIf(q, "resourceVersion", opts.ResourceVersion)
	if opts.SendInitialEvents {
		q.Set("sendInitialEvents", "true")
		q.Set("resourceVersionMatch", "NotOlderThan")
	}
	if opts.Timeout > 0 {
		q.Set("timeoutSeconds", strconv.Itoa(max(1, int(opts.Timeout/time.Second))))
	}
	answer, decoder, err := lw.get(ctx, "watch", q)
	if err != nil {
		lw.server.distrust(ctx)
		return nil, lw.errorf("watch", err)
	}
	media := mediaType(answer)
	if media != ContentJSON && media != ContentProtobuf {
		defer answer.Body.Close()
		body, _ := encoding.ReadBody(answer.Body, shownBody+1, 0)
		return nil, lw.errorf("watch", notAsExpected(answer, body, nil))
	}
	return NewStream(ctx, answer.Body, media == ContentProtobuf, decoder, lw.server), nil
}

// get sends one request to the resource, and returns what decodes the answer.
func (lw *restListerWatcher[T]) get(ctx context.Context, verb string, query url.Values) (*http.Response, *Decoder[T], error) {
	kind, m, err := lw.resolver.Resolve(ctx, lw.of)
	if err != nil {
		return nil, nil, err
	}
	path := GroupPath(m.Resource.GroupVersion())
	if lw.scope.Namespace != "" && m.Namespaced {
		path += "/namespaces/" + lw.scope.Namespace
	}
	r := Request{
		Verb: verb, resource: m.Resource.GroupResource(),
		Path: path + "/" + m.Resource.Resource, query: query, accept: lw.accept(verb),
	}
	answer, err := lw.server.get(ctx, r)
	if apierrors.IsNotAcceptable(err) && r.accept != lw.acceptPlain() {
		lw.plainAnswer.Store(true)
		r.accept = lw.acceptPlain()
		answer, err = lw.server.get(ctx, r)
	}
	if apierrors.IsNotFound(err) {
		lw.resolver.forget(lw.of)
		return nil, nil, &base.NotServedError{Kind: lw.of.named(), Err: err}
	}
	return answer, lw.decoder.ofKind(kind).keeping(lw.managed()), err
}

// accept is what form of answer to ask for. Of the metadata alone the server
// sends nothing else, where it can.
func (lw *restListerWatcher[T]) accept(verb string) string {
	if !lw.decoder.metadataOnly || lw.plainAnswer.Load() {
		return lw.acceptPlain()
	}
	as := ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	if verb == "list" {
		as = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	}
	return ContentProtobuf + as + "," + ContentJSON + as + "," + lw.acceptPlain()
}

func (lw *restListerWatcher[T]) acceptPlain() string {
	if lw.decoder.protobuf {
		return ContentProtobuf + "," + ContentJSON
	}
	return ContentJSON
}

// CloseIdleConnections closes the connections that no request uses.
func (lw *restListerWatcher[T]) CloseIdleConnections() { lw.server.CloseIdle() }

func (lw *restListerWatcher[T]) Host() (*Server, schema.GroupVersionKind) {
	return lw.server, lw.of.named()
}

func (lw *restListerWatcher[T]) Again(item listwatch.Item[T]) (T, error) {
	kind, _ := lw.resolver.KindOf(lw.of)
	return lw.decoder.ofKind(kind).keeping(lw.managed()).Again(item)
}

func (lw *restListerWatcher[T]) Namespaced() (namespaced, known bool) {
	return lw.resolver.Namespaced(lw.of)
}

func (lw *restListerWatcher[T]) selectors() url.Values {
	q := url.Values{}
	setIf(q, "labelSelector", lw.scope.LabelSelector)
	setIf(q, "fieldSelector", lw.scope.FieldSelector)
	return q
}

func setIf(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

// mediaType of an answer, without parameters.
func mediaType(answer *http.Response) string {
	header := answer.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return media
}

func notAsExpected(answer *http.Response, body []byte, err error) error {
	// A Status with code 200 says more than that it is not a list.
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*encoding.TooLargeError](err); ok {
		return fmt.Errorf("read list: %w", err)
	}
	u := *answer.Request.URL
	u.RawQuery, u.User = "", nil
	shown := shorten(body)
	if encoding.IsProtobuf(body) || err != nil && mediaType(answer) == ContentJSON {
		// Objects are named in errors, never printed: they may be Secrets.
		shown = fmt.Sprintf("%d bytes", len(body))
	}
	return &UnexpectedAnswerError{URL: u.String(), Code: answer.StatusCode, ContentType: answer.Header.Get("Content-Type"), Body: shown, Err: err}
}

// AnswerWithin is how long the server may take to answer, and to go on with
// an answer that it has begun.
const AnswerWithin = 90 * time.Second
