// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// feed is an in-memory server whose objects are decoded already, so the benchmark measures
// the informer. It serves one watch. client-go receives the objects as its clients deliver
// them, one by one over an unbuffered channel; a flyball Reflector asks its stream for the
// next frame, and the stream decodes in the caller's goroutine.
type feed struct {
	pods    []*corev1.Pod
	version int                // of the last state that was sent
	list    *corev1.PodList    // for client-go, created beforehand
	changes chan []*corev1.Pod // what the watch sends after the list
	paged   bool               // lists instead of streaming lists
	backlog int64              // bound in bytes of our handlers of every event, as in informer.HandlerOptions
}

func newFeed(pods []*corev1.Pod, paged bool) *feed {
	f := &feed{pods: pods, version: len(pods), changes: make(chan []*corev1.Pod), paged: paged}
	if paged {
		f.list = &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(len(pods))}, Items: make([]corev1.Pod, len(pods))}
		for i, pod := range pods {
			f.list.Items[i] = *pod
		}
	}
	return f
}

// next returns the state of pod after the last one that was sent.
func (f *feed) next(pod *corev1.Pod) *corev1.Pod {
	f.version++
	return changed(pod, f.version)
}

// fed is a feed as a flyball ListerWatcher.
type fed struct{ *feed }

func itemOf(pod *corev1.Pod) listwatch.Item[*corev1.Pod] {
	return listwatch.Item[*corev1.Pod]{Key: kube.KeyOf(pod), UID: pod.UID, ResourceVersion: pod.ResourceVersion, Object: pod}
}

func (f fed) List(_ context.Context, opts listwatch.ListOptions) (listwatch.Page[*corev1.Pod], error) {
	page := listwatch.Page[*corev1.Pod]{ResourceVersion: strconv.Itoa(len(f.pods))}
	from, _ := strconv.Atoi(opts.Continue)
	to := min(from+int(opts.Limit), len(f.pods))
	for _, pod := range f.pods[from:to] {
		page.Items = append(page.Items, itemOf(pod))
	}
	if to < len(f.pods) {
		page.Continue = strconv.Itoa(to)
	}
	return page, nil
}

func (f fed) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[*corev1.Pod], error) {
	s := &fedStream{feed: f.feed, ctx: ctx, frame: listwatch.FrameModified}
	if opts.SendInitialEvents {
		s.frame, s.batch = listwatch.FrameAdded, f.pods
	}
	return s, nil
}

type fedStream struct {
	*feed
	ctx   context.Context
	frame listwatch.FrameType
	batch []*corev1.Pod
}

func (s *fedStream) Next() (listwatch.Frame[*corev1.Pod], error) {
	for len(s.batch) == 0 {
		if s.frame == listwatch.FrameAdded {
			s.frame = listwatch.FrameModified
			return listwatch.Frame[*corev1.Pod]{
				Type: listwatch.FrameBookmark, Item: listwatch.Item[*corev1.Pod]{ResourceVersion: strconv.Itoa(len(s.pods))}, InitialEventsEnd: true,
			}, nil
		}
		select {
		case s.batch = <-s.changes:
		case <-s.ctx.Done():
			return listwatch.Frame[*corev1.Pod]{}, s.ctx.Err()
		}
	}
	pod := s.batch[0]
	s.batch = s.batch[1:]
	return listwatch.Frame[*corev1.Pod]{Type: s.frame, Item: itemOf(pod)}, nil
}

func (s *fedStream) Close() error { return nil }

// listWatch returns the feed as a client-go ListerWatcher.
func (f *feed) listWatch() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return f.list, nil },
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
			w := &fedWatch{result: make(chan watch.Event), done: make(chan struct{})}
			go w.run(f, initial)
			return w, nil
		},
	}, listSemantics{unsupported: f.paged})
}

// listSemantics is what client-go checks on a client.
type listSemantics struct{ unsupported bool }

func (l listSemantics) IsWatchListSemanticsUnSupported() bool { return l.unsupported }

type fedWatch struct {
	result chan watch.Event
	done   chan struct{}
}

func (w *fedWatch) ResultChan() <-chan watch.Event { return w.result }

func (w *fedWatch) Stop() {
	select {
	case <-w.done:
	default:
		close(w.done)
	}
}

func (w *fedWatch) send(e watch.Event) bool {
	select {
	case w.result <- e:
		return true
	case <-w.done:
		return false
	}
}

// run is the goroutine of a client's watch.
func (w *fedWatch) run(f *feed, initial bool) {
	if initial {
		for _, pod := range f.pods {
			if !w.send(watch.Event{Type: watch.Added, Object: pod}) {
				return
			}
		}
		if !w.send(watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(len(f.pods)), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}}) {
			return
		}
	}
	for {
		select {
		case batch := <-f.changes:
			for _, pod := range batch {
				if !w.send(watch.Event{Type: watch.Modified, Object: pod}) {
					return
				}
			}
		case <-w.done:
			return
		}
	}
}
