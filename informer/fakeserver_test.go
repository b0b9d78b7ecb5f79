// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
)

// server is one kind on a server, as a ListerWatcher sees it: a counter of
// revisions, the objects, and the history that watches are served from.
type server struct {
	mu struct {
		sync.Mutex
		revision  int
		objects   map[informer.Key]*corev1.ConfigMap
		history   []informer.Frame[*corev1.ConfigMap]
		compacted int // revisions up to here are gone from the history
		watches   []*watch
		lists     int
		deaf      bool  // watches are accepted, and nothing is sent
		broken    error // the answer to every list and watch
	}
}

func newServer() *server {
	s := &server{}
	s.mu.objects = make(map[informer.Key]*corev1.ConfigMap)
	return s
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"v": value}}
}

// put creates or updates, and returns what the server would answer.
func (s *server) put(name, value string) *corev1.ConfigMap {
	return s.write(configMap(name, value))
}

func (s *server) write(obj *corev1.ConfigMap) *corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.revision++
	key := informer.KeyOf(obj)
	frame := informer.FrameAdded
	if old, ok := s.mu.objects[key]; ok {
		obj.UID, frame = old.UID, informer.FrameModified
	} else {
		obj.UID = types.UID("uid-" + strconv.Itoa(s.mu.revision))
	}
	obj.ResourceVersion = strconv.Itoa(s.mu.revision)
	s.mu.objects[key] = obj
	s.tellLocked(informer.Frame[*corev1.ConfigMap]{Type: frame, Item: itemOf(obj)})
	return obj.DeepCopy()
}

// remove deletes, and returns the last state.
func (s *server) remove(name string) *corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := informer.Key{Namespace: "ns", Name: name}
	obj := s.mu.objects[key].DeepCopy()
	delete(s.mu.objects, key)
	s.mu.revision++
	obj.ResourceVersion = strconv.Itoa(s.mu.revision)
	s.tellLocked(informer.Frame[*corev1.ConfigMap]{Type: informer.FrameDeleted, Item: itemOf(obj)})
	return obj
}

func itemOf(obj *corev1.ConfigMap) informer.Item[*corev1.ConfigMap] {
	return informer.Item[*corev1.ConfigMap]{
		Key: informer.KeyOf(obj), UID: obj.UID, ResourceVersion: obj.ResourceVersion, Object: obj.DeepCopy(),
	}
}

func (s *server) tellLocked(f informer.Frame[*corev1.ConfigMap]) {
	s.mu.history = append(s.mu.history, f)
	if s.mu.deaf {
		return
	}
	for _, w := range s.mu.watches {
		w.send(f)
	}
}

// deafen keeps what happens from now on from the watches.
func (s *server) deafen(deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.deaf = deaf
}

// fail has every list and watch answered with err; nil: heals.
func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.broken = err
}

// cut ends all watches with err, io.EOF for a clean end.
func (s *server) cut(err error) {
	s.mu.Lock()
	watches := s.mu.watches
	s.mu.watches = nil
	s.mu.Unlock()
	for _, w := range watches {
		w.end(err)
	}
}

// compact forgets the history.
func (s *server) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.compacted, s.mu.history = s.mu.revision, nil
}

func (s *server) lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.lists
}

// open is how many watches are open.
func (s *server) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.watches)
}

func (s *server) List(_ context.Context, opts informer.ListOptions) (informer.Page[*corev1.ConfigMap], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.broken != nil {
		return informer.Page[*corev1.ConfigMap]{}, s.mu.broken
	}
	keys := slices.SortedFunc(maps.Keys(s.mu.objects), func(a, b informer.Key) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	page := informer.Page[*corev1.ConfigMap]{ResourceVersion: strconv.Itoa(s.mu.revision)}
	begin, _ := strconv.Atoi(opts.Continue)
	if begin == 0 {
		s.mu.lists++
	}
	end := len(keys)
	if n := int(opts.Limit); n > 0 && begin+n < end {
		end = begin + n
		page.Continue = strconv.Itoa(end)
	}
	for _, key := range keys[begin:end] {
		page.Items = append(page.Items, itemOf(s.mu.objects[key]))
	}
	return page, nil
}

func (s *server) Watch(ctx context.Context, opts informer.WatchOptions) (informer.Stream[*corev1.ConfigMap], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.broken != nil {
		return nil, s.mu.broken
	}
	from, _ := strconv.Atoi(opts.ResourceVersion)
	w := &watch{server: s, frames: make(chan informer.Frame[*corev1.ConfigMap], 10_000), over: make(chan struct{}), ctx: ctx}
	switch {
	case opts.SendInitialEvents:
		s.mu.lists++
		for _, obj := range s.mu.objects {
			w.send(informer.Frame[*corev1.ConfigMap]{Type: informer.FrameAdded, Item: itemOf(obj)})
		}
		w.send(informer.Frame[*corev1.ConfigMap]{
			Type: informer.FrameBookmark, InitialEventsEnd: true,
			Item: informer.Item[*corev1.ConfigMap]{ResourceVersion: strconv.Itoa(s.mu.revision)},
		})
	case from < s.mu.compacted:
		return nil, apierrors.NewResourceExpired("too old resource version")
	default:
		for _, f := range s.mu.history {
			if v, _ := strconv.Atoi(f.Item.ResourceVersion); v > from {
				w.send(f)
			}
		}
	}
	s.mu.watches = append(s.mu.watches, w)
	return w, nil
}

// watch is one open stream.
type watch struct {
	server *server
	frames chan informer.Frame[*corev1.ConfigMap]
	ctx    context.Context
	once   sync.Once
	over   chan struct{}
	err    error // set before over is closed
}

func (w *watch) send(f informer.Frame[*corev1.ConfigMap]) {
	select {
	case w.frames <- f:
	case <-w.over:
	}
}

func (w *watch) end(err error) {
	w.once.Do(func() {
		w.err = err
		close(w.over)
	})
}

func (w *watch) Next() (informer.Frame[*corev1.ConfigMap], error) {
	select {
	case f := <-w.frames:
		return f, nil
	default:
	}
	select {
	case f := <-w.frames:
		return f, nil
	case <-w.over:
		return informer.Frame[*corev1.ConfigMap]{}, w.err
	case <-w.ctx.Done():
		return informer.Frame[*corev1.ConfigMap]{}, w.ctx.Err()
	}
}

func (w *watch) Close() error {
	w.end(io.ErrClosedPipe)
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.server.mu.watches = slices.DeleteFunc(w.server.mu.watches, func(other *watch) bool { return other == w })
	return nil
}
