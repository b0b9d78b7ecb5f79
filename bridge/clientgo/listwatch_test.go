// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// script answers lists and watches from its fields, and records the requests.
type script struct {
	list  func(metav1.ListOptions) (runtime.Object, error)
	watch func(metav1.ListOptions) (watch.Interface, error)
	mu    struct {
		sync.Mutex
		asked []metav1.ListOptions
	}
}

func (s *script) List(opts metav1.ListOptions) (runtime.Object, error) { return s.list(opts) }

func (s *script) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	s.mu.asked = append(s.mu.asked, opts)
	s.mu.Unlock()
	return s.watch(opts)
}

func atVersion(obj cmap, version string) cmap {
	obj.ResourceVersion = version
	return obj
}

func TestListerWatcher_ListIsAPage(t *testing.T) {
	var asked metav1.ListOptions
	lw := clientgo.NewListerWatcher[cmap](&script{list: func(opts metav1.ListOptions) (runtime.Object, error) {
		asked = opts
		return &corev1.ConfigMapList{
			ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more"},
			Items:    []corev1.ConfigMap{*atVersion(configMap("a", "1"), "3"), *atVersion(configMap("b", "1"), "5")},
		}, nil
	}})
	page, err := lw.List(t.Context(), listwatch.ListOptions{Limit: 2, Continue: "next", ResourceVersion: "6", ResourceVersionMatch: "NotOlderThan"})
	if err != nil {
		t.Fatal(err)
	}
	if asked.Limit != 2 || asked.Continue != "next" || asked.ResourceVersion != "6" || asked.ResourceVersionMatch != "NotOlderThan" {
		t.Errorf("asked for %+v", asked)
	}
	if page.ResourceVersion != "7" || page.Continue != "more" || len(page.Items) != 2 {
		t.Fatalf("got %+v", page)
	}
	if item := page.Items[1]; item.Key.String() != "prod/b" || item.UID != "b" || item.ResourceVersion != "5" || item.Object.Name != "b" {
		t.Errorf("got %+v", item)
	}
}

func TestListerWatcher_AnswerOfAnotherTypeIsAnError(t *testing.T) {
	for name, answer := range map[string]runtime.Object{
		"objects of another kind": &corev1.PodList{Items: []corev1.Pod{{}}},
		"not a list":              &corev1.Pod{},
		"a status":                &metav1.Status{},
		"nothing":                 nil,
	} {
		lw := clientgo.NewListerWatcher[cmap](&script{list: func(metav1.ListOptions) (runtime.Object, error) { return answer, nil }})
		page, err := lw.List(t.Context(), listwatch.ListOptions{})
		if err == nil || !strings.Contains(err.Error(), "ConfigMap") {
			t.Errorf("%s: got %v, %v, want an error that names the type", name, page, err)
		}
	}
}

func TestListerWatcher_WatchIsAStream(t *testing.T) {
	w := watch.NewRaceFreeFake()
	s := &script{watch: func(metav1.ListOptions) (watch.Interface, error) { return w, nil }}
	stream, err := clientgo.NewListerWatcher[cmap](s).Watch(t.Context(), listwatch.WatchOptions{ResourceVersion: "9", SendInitialEvents: true, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	asked := s.mu.asked[0]
	if asked.ResourceVersion != "9" || !asked.AllowWatchBookmarks || *asked.TimeoutSeconds != 60 || !*asked.SendInitialEvents || asked.ResourceVersionMatch != "NotOlderThan" {
		t.Errorf("asked for %+v", asked)
	}
	end := atVersion(&corev1.ConfigMap{}, "12")
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	w.Add(atVersion(configMap("a", "1"), "10"))
	w.Action(watch.Bookmark, end)
	w.Modify(atVersion(configMap("a", "2"), "13"))
	w.Delete(atVersion(configMap("a", "2"), "14"))
	gone := apierrors.NewResourceExpired("too old").Status()
	w.Error(&gone)
	w.Add(&corev1.Pod{})

	var got []string
	for range 5 {
		frame, err := stream.Next()
		if err != nil {
			t.Fatal(err)
		}
		line := string(frame.Type) + " " + frame.Item.Key.Name + frame.Item.ResourceVersion
		if frame.InitialEventsEnd {
			line += " end"
		}
		if frame.Err != nil && apierrors.IsResourceExpired(frame.Err) {
			line += "expired"
		}
		got = append(got, line)
	}
	expect(t, "frames", got, "ADDED a10", "BOOKMARK 12 end", "MODIFIED a13", "DELETED a14", "ERROR expired")
	if _, err := stream.Next(); err == nil || !strings.Contains(err.Error(), "Pod") {
		t.Errorf("an object of another type: %v, want an error that names it", err)
	}
	w.Stop()
	if _, err := stream.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the watch's end: %v, want io.EOF", err)
	}
	for range 2 {
		if err := stream.Close(); err != nil {
			t.Errorf("Close: %v, want nothing, as often as it is called", err)
		}
	}
}

func TestListerWatcher_StreamEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := watch.NewFake() // its Stop does not reach a reader that reads nothing
		lw := clientgo.NewListerWatcher[cmap](&script{watch: func(metav1.ListOptions) (watch.Interface, error) { return never, nil }})
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := lw.Watch(ctx, listwatch.WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := stream.Next()
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; err == nil {
			t.Error("Next returned a frame after its context had ended")
		}
	})
}

func TestListerWatcher_FakeIsNeverAskedForAStreamingList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(configMap("a", "1"))
		var mu sync.Mutex
		var asked []metav1.ListOptions
		maps := client.CoreV1().ConfigMaps("prod")
		lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
				return maps.List(ctx, opts)
			},
			WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
				mu.Lock()
				asked = append(asked, opts)
				mu.Unlock()
				return maps.Watch(ctx, opts)
			},
		}, client)
		i := adapt(lw, informer.Options{})
		l := &log{}
		join(t, i, l, cache.HandlerOptions{})
		stop := run(t, i)
		synctest.Wait()
		expect(t, "the list of a fake clientset", l.take(), "add a 1 initial")

		for _, err := range []error{
			second(maps.Create(t.Context(), configMap("b", "1"), metav1.CreateOptions{})),
			second(maps.Update(t.Context(), configMap("b", "2"), metav1.UpdateOptions{})),
			maps.Delete(t.Context(), "a", metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		expect(t, "the watch of a fake clientset", l.take(), "add b 1", "update b 1>2", "delete a 1")
		stop()
		if slices.ContainsFunc(asked, func(o metav1.ListOptions) bool { return o.SendInitialEvents != nil }) {
			t.Error("a fake, which says that it knows no streaming lists, was asked for one")
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestListerWatcher_OneThatStreamsIsAskedForAStreamingList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{
			list: func(metav1.ListOptions) (runtime.Object, error) { return nil, errors.New("a list was asked for") },
			watch: func(metav1.ListOptions) (watch.Interface, error) {
				w := watch.NewRaceFreeFake()
				w.Add(atVersion(configMap("a", "1"), "3"))
				end := atVersion(&corev1.ConfigMap{}, "4")
				end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
				w.Action(watch.Bookmark, end)
				return w, nil
			},
		}
		i := adapt(s, informer.Options{})
		run(t, i)
		synctest.Wait()
		if !i.HasSynced() || i.LastSyncResourceVersion() != "4" {
			t.Errorf("synced: %v, version %q; want the streaming list's", i.HasSynced(), i.LastSyncResourceVersion())
		}
		expect(t, "the store", i.GetStore().ListKeys(), "prod/a")
	})
}
