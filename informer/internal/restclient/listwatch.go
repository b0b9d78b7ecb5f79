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
	"github.com/flyball-dev/flyball/informer/internal/headroom"
	"github.com/flyball-dev/flyball/informer/internal/pacing"
	"github.com/flyball-dev/flyball/informer/internal/share"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/bodylimit"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/kube"
)

const (
	ContentJSON     = "application/json"
	ContentProtobuf = "application/vnd.kubernetes.protobuf"
)

// Server is a Kubernetes API server over HTTP, with the credentials of a
// rest.Config. Safe for concurrent use.
type Server struct {
	client    *http.Client // without a timeout, which would end watches
	base      *url.URL
	userAgent string
	timeout   time.Duration // of the configuration, for requests other than watches; 0: none

	Pacer    *pacing.Pacer
	Memory   *headroom.Budget // nil: no bound
	Streams  streamMemory
	buffers  encoding.Buffers
	warnings warnings
	refused  atomic.Bool // the last answer was 401
	givenUp  usedConns
	plans    *plans
}

// NewServer returns the server of cfg, reached through client. lists is how
// many lists may run at a time.
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
		Pacer:     pacing.NewPacer(lists),
		plans:     newPlans(),
	}, nil
}

// Parts returns the parts that objects from the server share.
func (s *Server) Parts() *share.Table { return s.plans.table }

// Request is one GET request.
type Request struct {
	Verb     string // for errors
	resource schema.GroupResource
	Path     string
	query    url.Values
	accept   string
}

// get sends r and returns an answer with status 200, whose body the caller
// closes. Any other status is an *apierrors.StatusError. It uses the pass in
// ctx, or blocks at the server's gate for one until ctx ends.
func (s *Server) get(ctx context.Context, r Request) (*http.Response, error) {
	p := pacing.PassOf(ctx)
	aside := p != nil && r.Verb == pacing.VerbDiscover
	if p == nil {
		var err error
		if p, err = s.Pacer.Wait(ctx, pacing.Ask{Rank: pacing.RankOther, Kind: schema.GroupVersionKind{Group: r.group()}}, func(pacing.Hold) {}); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Verb, err)
		}
		defer p.Done()
	}
	if !p.Begin() {
		return nil, pacing.ErrHeld
	}
	answer, err := s.authorized(ctx, r)
	if err != nil {
		p.Replied(pacing.Unanswered(ctx, err, aside), 0)
		return nil, err
	}
	s.warnings.log(ctx, answer.Header)
	if answer.StatusCode == http.StatusOK {
		p.Replied(pacing.Answered(answer, nil, aside), 0)
		return answer, nil
	}
	defer answer.Body.Close()
	err = ErrorOf(answer, r.Verb, r.resource)
	p.Replied(pacing.Answered(answer, err, aside), pacing.AskedToWait(err))
	return nil, err
}

// authorized sends r. A first 401 makes the transport reread its token, so r is
// sent again; while 401s continue, requests are sent once.
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
		// Closing the connection after this request forces the next one onto
		// another, even if watches hold an HTTP/2 connection open.
		utilnet.CloseIdleConnectionsFor(s.transport())
		req.Close = true
		req.Header.Set("Cache-Control", "no-cache")
	}
	return s.exchange(ctx, req)
}

// group is the API group of r; empty: the core group, or none.
func (r Request) group() string {
	if parts := strings.Split(r.Path, "/"); len(parts) > 1 && parts[0] == "apis" {
		return parts[1]
	}
	return ""
}

// restListerWatcher lists and watches one kind in one scope.
type restListerWatcher struct {
	server      *Server
	resolver    *Resolver
	of          Target
	scope       listwatch.Scope
	kept        func() Kept
	decoder     *Decoder    // of a resource, without its kind
	plainAnswer atomic.Bool // the server refuses the parameters of accept
}

// NewListerWatcher returns a ListerWatcher for of in scope on the server of
// resolver, with objects of type t. It sends nothing. kept is called with each
// request and says what to keep of the objects in the answer; nil: the zero Kept.
func NewListerWatcher(t reflect.Type, resolver *Resolver, of Target, scope listwatch.Scope, kept func() Kept) (*restListerWatcher, error) {
	if kept == nil {
		kept = func() Kept { return Kept{} }
	}
	decoder, err := newDecoder(t, of.Kind, Kept{}, resolver.Server.plans)
	if err != nil {
		return nil, err
	}
	decoder.screen = encoding.NewShardScreen(scope.Division)
	return &restListerWatcher{server: resolver.Server, resolver: resolver, of: of, scope: scope, kept: kept, decoder: decoder}, nil
}

func (lw *restListerWatcher) List(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[kube.Object], error) {
	return lw.ListEach(ctx, opts, nil)
}

// ListEach is List with a function that takes each item as soon as it is
// decoded, while its Raw is valid, and returns what the page holds; nil: the
// item.
func (lw *restListerWatcher) ListEach(ctx context.Context, opts listwatch.ListOptions, each func(listwatch.Item[kube.Object]) listwatch.Item[kube.Object]) (listwatch.Page[kube.Object], error) {
	if lw.server.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lw.server.timeout)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := time.AfterFunc(AnswerWithin, func() { cancel(base.ErrSilent) })
	defer alarm.Stop()
	page, err := lw.list(ctx, opts, alarm, each)
	lw.server.distrust(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return listwatch.Page[kube.Object]{}, lw.errorf("list", err)
	}
	return page, nil
}

func (lw *restListerWatcher) errorf(verb string, err error) error {
	return fmt.Errorf("%s %s %s: %w", verb, lw.of.named().Kind, lw.scope, discreet(lw.of.named(), err))
}

func (lw *restListerWatcher) list(ctx context.Context, opts listwatch.ListOptions, alarm *time.Timer, each func(listwatch.Item[kube.Object]) listwatch.Item[kube.Object]) (listwatch.Page[kube.Object], error) {
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
	// The reader of the body enforces the limit; the transport waits for room
	// for it.
	answer, decoder, err := lw.get(bodylimit.WithLimit(ctx, limit+1), "list", q)
	if err != nil {
		return listwatch.Page[kube.Object]{}, err
	}
	defer answer.Body.Close()
	in := encoding.NewWindow(speaking{answer.Body, alarm, pacing.PassOf(ctx)}, limit, &lw.server.buffers)
	defer in.Close()
	page, shown, err := decoder.Page(mediaType(answer), in, whole, each)
	if read, ok := errors.AsType[*encoding.ReadError](err); ok {
		return listwatch.Page[kube.Object]{}, fmt.Errorf("read list: %w", read.Err)
	}
	if err != nil {
		return listwatch.Page[kube.Object]{}, notAsExpected(answer, shown, in.Size(), err)
	}
	return page, nil
}

// speaking sets an alarm during each read, and notifies the gate after it. What
// is done with the bytes meanwhile does not count against the server.
type speaking struct {
	io.Reader
	alarm *time.Timer
	pass  *pacing.Pass
}

func (s speaking) Read(p []byte) (int, error) {
	s.alarm.Reset(AnswerWithin)
	n, err := s.Reader.Read(p)
	s.alarm.Stop()
	s.pass.Received()
	return n, err
}

func (lw *restListerWatcher) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[kube.Object], error) {
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
		return nil, lw.errorf("watch", notAsExpected(answer, body, int64(len(body)), nil))
	}
	stream := NewStream(ctx, answer.Body, media == ContentProtobuf, decoder, lw.server)
	stream.setTogether(opts.SendInitialEvents && simhook.Of(ctx) == nil) // a simulation decides what runs when
	return stream, nil
}

// get sends one request to the resource and returns a decoder for the answer.
func (lw *restListerWatcher) get(ctx context.Context, verb string, query url.Values) (*http.Response, *Decoder, error) {
	kind, m, err := lw.resolver.Resolve(ctx, lw.of)
	if err != nil {
		return nil, nil, err
	}
	if m.unlisted {
		lw.resolver.forget(lw.of)
		return nil, nil, &kube.NotServedError{Kind: lw.of.named(), Unlisted: true}
	}
	kept, path := lw.kept(), GroupPath(m.Resource.GroupVersion())
	if lw.scope.Namespace != "" && m.Namespaced {
		path += "/namespaces/" + lw.scope.Namespace
	}
	r := Request{
		Verb: verb, resource: m.Resource.GroupResource(),
		Path: path + "/" + m.Resource.Resource, query: query, accept: lw.accept(verb, kept),
	}
	answer, err := lw.server.get(ctx, r)
	if apierrors.IsNotAcceptable(err) && r.accept != lw.acceptPlain() {
		lw.plainAnswer.Store(true)
		r.accept = lw.acceptPlain()
		answer, err = lw.server.get(ctx, r)
	}
	if apierrors.IsNotFound(err) {
		lw.resolver.forget(lw.of)
		return nil, nil, &kube.NotServedError{Kind: lw.of.named(), Err: err}
	}
	return answer, lw.decoder.ofKind(kind).keeping(kept), err
}

// dropManaged asks a server not to send managedFields (KEP-5958, alpha in
// Kubernetes 1.38). Servers that do not know it ignore it.
const dropManaged = ";drop=metadata.managedFields"

// accept returns the Accept header. The server sends metadata alone, and omits
// managedFields, if it can and more is not wanted.
func (lw *restListerWatcher) accept(verb string, kept Kept) string {
	parameters := ""
	switch {
	case !lw.decoder.metadataOnly:
	case verb == "list":
		parameters = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	default:
		parameters = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	}
	if !kept.ManagedFields {
		parameters += dropManaged
	}
	if parameters == "" || lw.plainAnswer.Load() {
		return lw.acceptPlain()
	}
	return lw.acceptWith(parameters) + "," + lw.acceptPlain()
}

func (lw *restListerWatcher) acceptPlain() string { return lw.acceptWith("") }

func (lw *restListerWatcher) acceptWith(parameters string) string {
	if lw.decoder.protobuf {
		return ContentProtobuf + parameters + "," + ContentJSON + parameters
	}
	return ContentJSON + parameters
}

// CloseIdleConnections closes the connections that no request uses.
func (lw *restListerWatcher) CloseIdleConnections() { lw.server.CloseIdle() }

func (lw *restListerWatcher) Host() (*Server, schema.GroupVersionKind) {
	return lw.server, lw.of.named()
}

func (lw *restListerWatcher) Again(item listwatch.Item[kube.Object]) (kube.Object, error) {
	kind, _ := lw.resolver.KindOf(lw.of)
	return lw.decoder.ofKind(kind).keeping(lw.kept()).Again(item)
}

func (lw *restListerWatcher) Namespaced() (namespaced, known bool) {
	return lw.resolver.Namespaced(lw.of)
}

func (lw *restListerWatcher) selectors() url.Values {
	q := url.Values{}
	setIf(q, "labelSelector", lw.scope.LabelSelector)
	setIf(q, "fieldSelector", lw.scope.FieldSelector)
	setIf(q, "shardSelector", lw.scope.ShardSelector)
	return q
}

func setIf(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

// mediaType returns the media type of an answer, without parameters.
func mediaType(answer *http.Response) string {
	header := answer.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return media
}

// notAsExpected returns the error for an answer of size bytes, of which body is
// what may be shown.
func notAsExpected(answer *http.Response, body []byte, size int64, err error) error {
	// A Status with code 200 is more informative.
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*kube.TooLargeError](err); ok {
		return fmt.Errorf("read list: %w", err)
	}
	u := *answer.Request.URL
	u.RawQuery, u.User = "", nil
	shown := shorten(body)
	if encoding.IsProtobuf(body) || len(body) == 0 && size > 0 || err != nil && mediaType(answer) == ContentJSON {
		// Errors do not print objects, which may be Secrets.
		shown = fmt.Sprintf("%d bytes", size)
	}
	return &kube.UnexpectedAnswerError{URL: u.String(), Code: answer.StatusCode, ContentType: answer.Header.Get("Content-Type"), Body: shown, Err: err}
}

// AnswerWithin is how long the server may take to begin an answer, and to
// continue it.
const AnswerWithin = 90 * time.Second
