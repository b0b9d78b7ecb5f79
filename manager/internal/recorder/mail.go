// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/codec"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/internal/textlog"
)

const (
	eventTimeout    = 10 * time.Second // of one request
	eventTries      = 12
	eventTriesAtEnd = 3
	firstEventPause = 250 * time.Millisecond
	lastEventPause  = 10 * time.Second
	eventSweep      = time.Minute
)

// Mail sends Events. It is a Runnable with one goroutine.
type Mail struct {
	client rest.Interface // for group events.k8s.io
	log    logr.Logger
	until  func() time.Time // deadline of a stop
	wake   chan struct{}    // with a buffer of one

	mu struct {
		sync.Mutex
		book   eventBook
		counts map[eventResult]uint64
		said   map[said]*Said
		closed bool
	}
}

// said are a controller, a type and a reason of Events.
type said struct{ controller, kind, reason string }

// Said is how often a controller has recorded Events of a type for a reason.
type Said struct {
	Controller, Type, Reason string
	Count                    uint64
	Last                     time.Time
}

const (
	mostSaid      = 100
	longestReason = 128 // bytes, as the server allows
)

// NewMail returns a Mail. It sends nothing before Run.
func NewMail(cfg *rest.Config, log logr.Logger, until func() time.Time) (*Mail, error) {
	cfg = rest.CopyConfig(cfg)
	_, serializer, err := codec.For(eventsv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	cfg.APIPath, cfg.GroupVersion, cfg.NegotiatedSerializer = "/apis", &eventsv1.SchemeGroupVersion, serializer
	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	e := &Mail{client: client, log: log, until: until, wake: make(chan struct{}, 1)}
	e.mu.book, e.mu.counts = newEventBook(), map[eventResult]uint64{}
	e.mu.said = map[said]*Said{}
	return e, nil
}

func (e *Mail) Name() string { return "events" }

// record adds event to the book; it does not block.
func (e *Mail) record(event *eventsv1.Event, now time.Time) {
	e.mu.Lock()
	result := eventOverflow
	if !e.mu.closed {
		result = e.mu.book.record(event, now)
	}
	e.mu.counts[result]++
	e.countLocked(event, now)
	dropped := result == eventLimited || result == eventOverflow
	first := dropped && e.mu.book.firstDropped(event, now)
	e.mu.Unlock()
	if first {
		textlog.Warn(e.log, nil, "Dropped an Event, and will drop more of this object without a line; flyball_events_total counts them",
			"why", string(result), "object", event.Regarding.Kind+" "+event.Regarding.Namespace+"/"+event.Regarding.Name,
			"type", event.Type, "reason", event.Reason)
	} else if dropped {
		e.log.V(1).Info("Dropped an Event", "why", string(result), "object", event.Regarding.Namespace+"/"+event.Regarding.Name, "reason", event.Reason)
	}
	select {
	case e.wake <- struct{}{}:
	default: // already woken
	}
}

// countLocked counts an Event by its reason, in place of the reason that came last longest ago if
// there are too many.
func (e *Mail) countLocked(event *eventsv1.Event, now time.Time) {
	of := said{event.ReportingController, event.Type, shorten(event.Reason, longestReason)}
	s := e.mu.said[of]
	if s == nil {
		if len(e.mu.said) == mostSaid {
			oldest := slices.MinFunc(slices.Collect(maps.Keys(e.mu.said)), func(a, b said) int { return e.mu.said[a].Last.Compare(e.mu.said[b].Last) })
			delete(e.mu.said, oldest)
		}
		s = &Said{Controller: of.controller, Type: of.kind, Reason: of.reason}
		e.mu.said[of] = s
	}
	s.Count++
	s.Last = now
}

// Said returns how often each reason was recorded, those that came last first: 100 at most.
func (e *Mail) Said() []Said {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]Said, 0, len(e.mu.said))
	for _, s := range e.mu.said {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Said) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Controller, b.Controller), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Type, b.Type))
	})
	return out
}

// Counts returns the number of recorded events by result.
func (e *Mail) Counts() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		e.mu.Lock()
		counts := maps.Clone(e.mu.counts)
		e.mu.Unlock()
		for _, result := range []eventResult{eventAccepted, eventCounted, eventMerged, eventLimited, eventOverflow} {
			if !yield(string(result), counts[result]) {
				return
			}
		}
	}
}

// Run sends until ctx ends, and then the events recorded by then.
func (e *Mail) Run(ctx context.Context) error {
	instance := "simulation"
	if host, err := os.Hostname(); err == nil && simhook.Of(ctx) == nil {
		instance = host
	}
	sweep := time.NewTicker(eventSweep)
	defer sweep.Stop()
	for {
		for ctx.Err() == nil && e.sendNext(ctx, instance, eventTries) {
			select {
			case <-sweep.C: // even if there is always more to send
				e.sweep(false)
			default:
			}
		}
		select {
		case <-e.wake:
		case <-sweep.C:
			e.sweep(false)
		case <-ctx.Done():
			e.flush(ctx, instance)
			return nil
		}
	}
}

// flush sends the rest, unless the server does not answer.
func (e *Mail) flush(ctx context.Context, instance string) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), e.until())
	defer cancel()
	e.sweep(true)
	for e.sendNext(ctx, instance, eventTriesAtEnd) {
	}
	if left := e.close(); left > 0 {
		textlog.Warn(e.log, nil, "Events were not sent, because the server does not answer", "events", left)
	}
}

func (e *Mail) sweep(all bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.book.sweep(time.Now(), all)
}

// close drops later events, and returns how many wait.
func (e *Mail) close() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.closed = true
	return len(e.mu.book.waiting)
}

// sendNext sends the first waiting event, and retries while the server does not accept
// it. It reports false when there is none, or when the retries are used up and the
// event keeps waiting.
func (e *Mail) sendNext(ctx context.Context, instance string, tries int) bool {
	e.mu.Lock()
	s := e.mu.book.next()
	e.mu.Unlock()
	if s == nil {
		return false
	}
	wait := firstEventPause
	for try := 1; ; try++ {
		err := e.send(ctx, s, instance)
		switch {
		case err == nil:
			return true
		case !mayHeal(err):
			textlog.Warn(e.log, nil, "The server refused an Event", "object", s.event.Regarding.Namespace+"/"+s.event.Regarding.Name,
				"reason", s.event.Reason, "error", err.Error())
			e.giveUp(s)
			return true
		case try == tries && tries == eventTries:
			textlog.Warn(e.log, err, "Dropped an Event after its last try", "tries", tries)
			e.giveUp(s)
			return true
		case try == tries || !sleep.For(ctx, wait):
			e.putBack(s)
			return false
		}
		wait = min(2*wait, lastEventPause)
	}
}

// giveUp drops an event that the server has not accepted. If it is recorded again, it
// is sent again.
func (e *Mail) giveUp(s *series) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !s.created {
		e.mu.book.forget(s)
	}
}

func (e *Mail) putBack(s *series) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !s.queued {
		s.queued = true
		e.mu.book.waiting = append([]*series{s}, e.mu.book.waiting...)
	}
}

// send creates or updates the Event of s on the server.
func (e *Mail) send(ctx context.Context, s *series, instance string) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	e.mu.Lock()
	event := s.event.DeepCopy()
	count, created := s.count, s.created
	tried := s.tries > 0
	if count > 1 {
		event.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(s.last)}
	}
	if !created {
		s.tries++
	}
	e.mu.Unlock()
	event.ReportingInstance = shorten(event.ReportingController+"-"+instance, 128)

	var err error
	if created {
		err = e.patch(ctx, event)
	}
	if !created || apierrors.IsNotFound(err) { // the server deletes events after an hour
		err = e.client.Post().Namespace(event.Namespace).Resource("events").Body(event).Do(ctx).Error()
		if tried && apierrors.IsAlreadyExists(err) {
			err = nil // by an earlier attempt that got no answer
		}
	}
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.created, s.sent, s.sentAt = true, count, time.Now()
	if count == 1 && s.count > 1 {
		e.mu.book.queue(s)
	}
	return nil
}

func (e *Mail) patch(ctx context.Context, event *eventsv1.Event) error {
	body, err := json.Marshal(map[string]any{"series": event.Series})
	if err != nil {
		return fmt.Errorf("encode the series: %w", err)
	}
	return e.client.Patch(types.MergePatchType).Namespace(event.Namespace).Resource("events").Name(event.Name).Body(body).Do(ctx).Error()
}

// mayHeal reports whether a retry after err may succeed.
func mayHeal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // the server was not reached
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}
