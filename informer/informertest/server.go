// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// Server is one kind on a server. It is an informer.ListerWatcher.
type Server[T informer.Object] struct {
	mu struct {
		sync.Mutex
		revision  int
		objects   map[informer.Key]listwatch.Item[T]
		history   []listwatch.Frame[T]
		compacted int           // revisions up to here are gone from the history
		changed   chan struct{} // closed and made anew when a watch may have news
		watches   []*watch[T]
		lists     int
		held      bool
		broken    error
	}
}

// NewServer returns a server without objects.
func NewServer[T informer.Object]() *Server[T] {
	s := &Server[T]{}
	s.mu.objects = make(map[informer.Key]listwatch.Item[T])
	s.mu.changed = make(chan struct{})
	return s
}

// Write creates or updates obj, which stays the caller's, and returns the
// server's answer. An object that is being deleted and has no finalizers is
// deleted by it.
func (s *Server[T]) Write(obj T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj = informer.Copy(obj)
	s.storeLocked(itemOf(obj))
	return informer.Copy(obj)
}

// Spoil writes an object that the informer cannot decode, for the reason err.
func (s *Server[T]) Spoil(key informer.Key, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeLocked(listwatch.Item[T]{Key: key, Err: err, Metadata: s.metadataLocked(key)})
}

// metadataLocked is that of the object of key, or a new one's.
func (s *Server[T]) metadataLocked(key informer.Key) *metav1.PartialObjectMetadata {
	item := s.mu.objects[key]
	switch {
	case item.Metadata != nil:
		return item.Metadata.DeepCopy()
	case item.Key.Name != "":
		return meta.AsPartialObjectMetadata(informer.Copy(item.Object))
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// storeLocked gives item its UID and the next revision, keeps it, and tells
// the watches.
func (s *Server[T]) storeLocked(item listwatch.Item[T]) {
	s.mu.revision++
	item.ResourceVersion = strconv.Itoa(s.mu.revision)
	frame := listwatch.FrameAdded
	if old, ok := s.mu.objects[item.Key]; ok {
		item.UID, frame = old.UID, listwatch.FrameModified
	} else {
		item.UID = types.UID("uid-" + item.ResourceVersion)
	}
	s.mu.objects[item.Key] = item
	if item.Metadata != nil {
		item.Metadata.UID, item.Metadata.ResourceVersion = item.UID, item.ResourceVersion
	}
	if item.Err == nil {
		item.Object.SetUID(item.UID)
		item.Object.SetResourceVersion(item.ResourceVersion)
		if item.Object.GetDeletionTimestamp() != nil && len(item.Object.GetFinalizers()) == 0 {
			delete(s.mu.objects, item.Key)
			frame = listwatch.FrameDeleted
		}
	}
	s.mu.history = append(s.mu.history, listwatch.Frame[T]{Type: frame, Item: item})
	s.wakeLocked()
}

// Delete removes the object of key at once and returns its last state, zero
// when it cannot be decoded. There must be one.
func (s *Server[T]) Delete(key informer.Key) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := copyOf(s.mu.objects[key])
	delete(s.mu.objects, key)
	s.mu.revision++
	last.ResourceVersion = strconv.Itoa(s.mu.revision)
	s.mu.history = append(s.mu.history, listwatch.Frame[T]{Type: listwatch.FrameDeleted, Item: last})
	s.wakeLocked()
	if last.Err != nil {
		return last.Object
	}
	last.Object.SetResourceVersion(last.ResourceVersion)
	return informer.Copy(last.Object)
}

// Get returns the object of key as the server has it.
func (s *Server[T]) Get(key informer.Key) (obj T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, ok := s.mu.objects[key]
	return copyOf(item).Object, ok
}

// Hold lets watches lag: they tell nothing until Release.
func (s *Server[T]) Hold() { s.setHeld(true) }

// Release lets watches catch up.
func (s *Server[T]) Release() { s.setHeld(false) }

func (s *Server[T]) setHeld(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.held = held
	s.wakeLocked()
}

// Fail has every list and watch from now on answered with err; nil heals.
func (s *Server[T]) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.broken = err
}

// Cut ends the open watches with err; io.EOF is a clean end.
func (s *Server[T]) Cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.mu.watches {
		w.err = err
	}
	s.mu.watches = nil
	s.wakeLocked()
}

// Compact forgets the history: a watch from before it is told 410 Expired.
func (s *Server[T]) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.compacted, s.mu.history = s.mu.revision, nil
	s.wakeLocked()
}

func (s *Server[T]) wakeLocked() {
	close(s.mu.changed)
	s.mu.changed = make(chan struct{})
}

// Lists is how often a list or a streaming list was begun.
func (s *Server[T]) Lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.lists
}

// Watches is how many watches are open.
func (s *Server[T]) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.watches)
}

// List answers one page, in the order of keys.
func (s *Server[T]) List(_ context.Context, opts listwatch.ListOptions) (listwatch.Page[T], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.broken != nil {
		return listwatch.Page[T]{}, s.mu.broken
	}
	begin, err := strconv.Atoi(opts.Continue)
	if err != nil {
		begin = 0
		s.mu.lists++
	}
	keys := s.keysLocked()
	end := len(keys)
	page := listwatch.Page[T]{ResourceVersion: strconv.Itoa(s.mu.revision)}
	if n := int(opts.Limit); n > 0 && begin+n < end {
		end = begin + n
		page.Continue = strconv.Itoa(end)
	}
	for _, key := range keys[min(begin, end):end] {
		page.Items = append(page.Items, copyOf(s.mu.objects[key]))
	}
	return page, nil
}

// Watch opens a watch, or a streaming list.
func (s *Server[T]) Watch(ctx context.Context, opts listwatch.WatchOptions) (listwatch.Stream[T], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.broken != nil {
		return nil, s.mu.broken
	}
	w := &watch[T]{server: s, ctx: ctx}
	if opts.SendInitialEvents {
		s.mu.lists++
		for _, key := range s.keysLocked() {
			w.initial = append(w.initial, listwatch.Frame[T]{Type: listwatch.FrameAdded, Item: copyOf(s.mu.objects[key])})
		}
		w.after = s.mu.revision
		w.initial = append(w.initial, listwatch.Frame[T]{
			Type: listwatch.FrameBookmark, InitialEventsEnd: true,
			Item: listwatch.Item[T]{ResourceVersion: strconv.Itoa(s.mu.revision)},
		})
	} else {
		after, err := strconv.Atoi(opts.ResourceVersion)
		if err != nil {
			return nil, apierrors.NewBadRequest("resourceVersion: " + err.Error())
		}
		w.after = after
	}
	s.mu.watches = append(s.mu.watches, w)
	return w, nil
}

func (s *Server[T]) keysLocked() []informer.Key {
	return slices.SortedFunc(maps.Keys(s.mu.objects), func(a, b informer.Key) int {
		return strings.Compare(a.String(), b.String())
	})
}

func itemOf[T informer.Object](obj T) listwatch.Item[T] {
	return listwatch.Item[T]{Key: informer.KeyOf(obj), Object: obj}
}

// copyOf gives an informer an object of its own, which it may transform.
func copyOf[T informer.Object](item listwatch.Item[T]) listwatch.Item[T] {
	if item.Err == nil && item.ResourceVersion != "" {
		item.Object = informer.Copy(item.Object)
	}
	return item
}

// watch is one open stream. Its err is guarded by the server's lock.
type watch[T informer.Object] struct {
	server  *Server[T]
	ctx     context.Context // of the request
	initial []listwatch.Frame[T]
	after   int // the revision that was told last
	err     error
}

func (w *watch[T]) Next() (listwatch.Frame[T], error) {
	for {
		frame, ok, changed, err := w.look()
		if ok || err != nil {
			return frame, err
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			return frame, w.ctx.Err()
		}
	}
}

// look is the next frame, if there is one, or the channel to wait on.
func (w *watch[T]) look() (frame listwatch.Frame[T], ok bool, changed <-chan struct{}, err error) {
	s := w.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case w.err != nil:
		return frame, false, nil, w.err
	case w.ctx.Err() != nil:
		return frame, false, nil, w.ctx.Err()
	case len(w.initial) > 0:
		frame, w.initial = w.initial[0], w.initial[1:]
		return frame, true, nil, nil
	case s.mu.held:
		return frame, false, s.mu.changed, nil
	case w.after < s.mu.compacted:
		return listwatch.Frame[T]{Type: listwatch.FrameError, Err: apierrors.NewResourceExpired("too old resource version")}, true, nil, nil
	}
	// Revisions are counted one by one, so the history begins after compacted.
	if at := w.after - s.mu.compacted; at < len(s.mu.history) {
		w.after++
		frame = s.mu.history[at]
		frame.Item = copyOf(frame.Item)
		return frame, true, nil, nil
	}
	return frame, false, s.mu.changed, nil
}

func (w *watch[T]) Close() error {
	s := w.server
	s.mu.Lock()
	defer s.mu.Unlock()
	w.err = io.ErrClosedPipe
	s.mu.watches = slices.DeleteFunc(s.mu.watches, func(other *watch[T]) bool { return other == w })
	s.wakeLocked()
	return nil
}
