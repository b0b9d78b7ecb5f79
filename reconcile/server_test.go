// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
)

// server is a ListerWatcher of Deployments that the test writes to.
type server struct {
	mu struct {
		sync.Mutex
		version int
		objects map[informer.Key]*appsv1.Deployment
		frames  []informer.Frame[*appsv1.Deployment] // all that a watch can tell
		grown   chan struct{}                        // closed and renewed with each frame
		held    bool                                 // watches tell nothing
	}
}

func newServer() *server {
	s := &server{}
	s.mu.version = 1
	s.mu.objects = make(map[informer.Key]*appsv1.Deployment)
	s.mu.grown = make(chan struct{})
	return s
}

// write makes d the newest state. An object whose deletionTimestamp is set and that
// has no finalizers is deleted by it.
func (s *server) write(d *appsv1.Deployment) *appsv1.Deployment {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := informer.KeyOf(d)
	d = d.DeepCopy()
	s.mu.version++
	d.ResourceVersion = strconv.Itoa(s.mu.version)
	kind := informer.FrameModified
	if before, known := s.mu.objects[key]; known {
		d.UID = before.UID
	} else {
		kind = informer.FrameAdded
		d.UID = types.UID(d.ResourceVersion)
	}
	s.mu.objects[key] = d
	if d.DeletionTimestamp != nil && len(d.Finalizers) == 0 {
		kind = informer.FrameDeleted
		delete(s.mu.objects, key)
	}
	s.tellLocked(informer.Frame[*appsv1.Deployment]{Type: kind, Item: itemOf(d)})
	return d.DeepCopy()
}

func (s *server) tellLocked(f informer.Frame[*appsv1.Deployment]) {
	s.mu.frames = append(s.mu.frames, f)
	close(s.mu.grown)
	s.mu.grown = make(chan struct{})
}

// spoil is a write of an object that the informer cannot decode.
func (s *server) spoil(d *appsv1.Deployment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.version++
	s.tellLocked(informer.Frame[*appsv1.Deployment]{Type: informer.FrameAdded, Item: informer.Item[*appsv1.Deployment]{
		Key: informer.KeyOf(d), UID: "spoilt", ResourceVersion: strconv.Itoa(s.mu.version), Err: errors.New("replicas is a text"),
	}})
}

// get is the object as the server has it, nil if it is not there.
func (s *server) get(name string) *appsv1.Deployment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.objects[informer.Key{Namespace: "prod", Name: name}].DeepCopy()
}

// remove asks for deletion, as kubectl delete does.
func (s *server) remove(name string) {
	d := s.get(name)
	d.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	s.write(d)
}

// hold makes the watches lag until release.
func (s *server) hold() { s.setHeld(true) }

func (s *server) release() { s.setHeld(false) }

func (s *server) setHeld(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.held = held
	close(s.mu.grown)
	s.mu.grown = make(chan struct{})
}

// delete is a write that ends the object at once.
func (s *server) delete(d *appsv1.Deployment) {
	d = d.DeepCopy()
	d.Finalizers = nil
	d.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	s.write(d)
}

func itemOf(d *appsv1.Deployment) informer.Item[*appsv1.Deployment] {
	d = d.DeepCopy()
	return informer.Item[*appsv1.Deployment]{Key: informer.KeyOf(d), UID: d.UID, ResourceVersion: d.ResourceVersion, Object: d}
}

func (s *server) List(context.Context, informer.ListOptions) (informer.Page[*appsv1.Deployment], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page := informer.Page[*appsv1.Deployment]{ResourceVersion: strconv.Itoa(s.mu.version)}
	for _, d := range s.mu.objects {
		page.Items = append(page.Items, itemOf(d))
	}
	return page, nil
}

func (s *server) Watch(ctx context.Context, opts informer.WatchOptions) (informer.Stream[*appsv1.Deployment], error) {
	after, err := strconv.Atoi(opts.ResourceVersion)
	ctx, cancel := context.WithCancel(ctx)
	return &stream{server: s, ctx: ctx, cancel: cancel, after: after}, err
}

type stream struct {
	server *server
	ctx    context.Context
	cancel context.CancelFunc
	after  int // version
	next   int // of the server's frames
}

func (s *stream) Next() (informer.Frame[*appsv1.Deployment], error) {
	for {
		s.server.mu.Lock()
		frames, grown := s.server.mu.frames, s.server.mu.grown
		if s.server.mu.held {
			frames = nil
		}
		s.server.mu.Unlock()
		for ; s.next < len(frames); s.next++ {
			if v, _ := strconv.Atoi(frames[s.next].Item.ResourceVersion); v > s.after {
				s.next++
				f := frames[s.next-1]
				if f.Item.Err == nil {
					f.Item = itemOf(f.Item.Object)
				}
				return f, nil
			}
		}
		select {
		case <-s.ctx.Done():
			return informer.Frame[*appsv1.Deployment]{}, io.EOF
		case <-grown:
		}
	}
}

func (s *stream) Close() error {
	s.cancel()
	return nil
}

func deployment(name string, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, Generation: 1}}
	for _, change := range changes {
		change(d)
	}
	return d
}

// watch is a running informer of s; it ends with the test.
func watch(t *testing.T, s *server) *informer.SharedInformer[*appsv1.Deployment] {
	t.Helper()
	i := newInformer(s)
	run(t, i)
	return i
}

func newInformer(s *server) *informer.SharedInformer[*appsv1.Deployment] {
	return informer.New(informer.ListerWatcher[*appsv1.Deployment](s), appsv1.SchemeGroupVersion.WithKind("Deployment"), informer.Options{PagedLists: true})
}

func run(t *testing.T, i *informer.SharedInformer[*appsv1.Deployment]) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	synctest.Wait()
}
