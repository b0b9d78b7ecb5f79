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

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// Server serves one kind. It is a listwatch.ListerWatcher.
type Server[T kube.Object] struct {
	mu struct {
		sync.Mutex
		revision  int
		objects   map[kube.Key]listwatch.Item[T]
		history   []listwatch.Frame[T]
		compacted int           // the history lacks revisions up to here
		changed   chan struct{} // closed and replaced when a watch may have news
		watches   []*watch[T]
		lists     int
		held      bool
		broken    error
	}
}

func NewServer[T kube.Object]() *Server[T] {
	s := &Server[T]{}
	s.mu.objects = make(map[kube.Key]listwatch.Item[T])
	s.mu.changed = make(chan struct{})
	return s
}

// Write creates or updates a copy of obj and returns the server's answer. It
// deletes an object that is being deleted and has no finalizers.
func (s *Server[T]) Write(obj T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj = kube.Copy(obj)
	s.storeLocked(itemOf(obj))
	return kube.Copy(obj)
}

// SetUndecodable writes an object that the informer cannot decode because of err.
func (s *Server[T]) SetUndecodable(key kube.Key, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeLocked(listwatch.Item[T]{Key: key, Err: err, Metadata: s.metadataLocked(key)})
}

// metadataLocked returns the metadata of the object of key, or that of a new
// one.
func (s *Server[T]) metadataLocked(key kube.Key) *metav1.PartialObjectMetadata {
	item := s.mu.objects[key]
	switch {
	case item.Metadata != nil:
		return item.Metadata.DeepCopy()
	case item.Key.Name != "":
		return meta.AsPartialObjectMetadata(kube.Copy(item.Object))
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// storeLocked stores item with its UID and the next revision, and wakes the
// watches.
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

// Delete removes the object of key at once and returns its last state, zero if
// it cannot be decoded. The object must exist.
func (s *Server[T]) Delete(key kube.Key) T {
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
	return kube.Copy(last.Object)
}

// Get returns the server's object of key.
func (s *Server[T]) Get(key kube.Key) (obj T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, ok := s.mu.objects[key]
	return copyOf(item).Object, ok
}

// Hold delays all watches: they send nothing until Release.
func (s *Server[T]) Hold() { s.setHeld(true) }

// Release ends a Hold.
func (s *Server[T]) Release() { s.setHeld(false) }

func (s *Server[T]) setHeld(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.held = held
	s.wakeLocked()
}

// Fail answers every later list and watch with err; nil ends this.
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

// Compact drops the history: a watch from an earlier version gets 410 Expired.
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

// Lists returns how many lists and streaming lists have begun.
func (s *Server[T]) Lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.lists
}

// Watches returns the number of open watches.
func (s *Server[T]) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.watches)
}

// List returns one page, sorted by key.
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

func (s *Server[T]) keysLocked() []kube.Key {
	return slices.SortedFunc(maps.Keys(s.mu.objects), func(a, b kube.Key) int {
		return strings.Compare(a.String(), b.String())
	})
}

func itemOf[T kube.Object](obj T) listwatch.Item[T] {
	return listwatch.Item[T]{Key: kube.KeyOf(obj), Object: obj}
}

// copyOf copies item for an informer, which may transform its object.
func copyOf[T kube.Object](item listwatch.Item[T]) listwatch.Item[T] {
	if item.Err == nil && item.ResourceVersion != "" {
		item.Object = kube.Copy(item.Object)
	}
	return item
}

type watch[T kube.Object] struct {
	server  *Server[T]
	ctx     context.Context
	initial []listwatch.Frame[T]
	after   int // the last revision sent
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

// look returns the next frame, if there is one, or the channel to wait on.
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
	// Revisions are consecutive, so the history begins after compacted.
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
