// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/source/sourcetest"
)

func newInformer() (server, cache.SharedIndexInformer) {
	s := server{fcache.NewFakeControllerSource()}
	return s, cache.NewSharedIndexInformer(s, &corev1.ConfigMap{}, 0, cache.Indexers{})
}

// running runs a client-go informer together with its source.
type running struct {
	*clientgo.Source[source.Key]
	informer cache.SharedIndexInformer
}

func (r running) Run(ctx context.Context, add func(source.Key, source.Cause)) error {
	living, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { r.informer.RunWithContext(living) })
	defer wg.Wait()
	defer cancel()
	return r.Source.Run(ctx, add)
}

// still is a server with one object and no events.
type still struct{}

func (still) IsWatchListSemanticsUnSupported() bool { return true }

func (still) List(metav1.ListOptions) (runtime.Object, error) {
	return &corev1.ConfigMapList{Items: []corev1.ConfigMap{*configMap("a", "1")}}, nil
}

func (still) Watch(metav1.ListOptions) (watch.Interface, error) { return watch.NewRaceFreeFake(), nil }

func TestSource_IsASource_G16(t *testing.T) {
	sourcetest.Run(t, func() source.Source[source.Key] {
		i := cache.NewSharedIndexInformer(still{}, &corev1.ConfigMap{}, 0, cache.Indexers{})
		return running{clientgo.NewSource("ConfigMap", i, source.Self), i}
	})
}

func TestSource_EachEventAddsItsKeys_G16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, i := newInformer()
		s.Add(configMap("a", "x"))
		byV := func(obj kube.Object) iter.Seq[string] {
			v := obj.(*corev1.ConfigMap).Data["v"]
			if v == "panic" {
				panic("in a mapper")
			}
			return slices.Values([]string{v, v})
		}
		named := clientgo.NewSource("ConfigMap", i, byV)
		var mu sync.Mutex
		var got []string
		take := func() []string {
			mu.Lock()
			defer mu.Unlock()
			lines := got
			got = nil
			return lines
		}
		expect := func(what string, want ...string) {
			t.Helper()
			if got := take(); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		living, end := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { i.RunWithContext(living); done <- nil }()
		go func() {
			done <- named.Run(ctx, func(key string, cause source.Cause) {
				mu.Lock()
				defer mu.Unlock()
				line := fmt.Sprintf("%s %s %s", key, cause.Type, cause.Object.Name)
				if cause.Initial {
					line += " initial"
				}
				got = append(got, line)
			})
		}()
		synctest.Wait()
		expect("what was there", "x added a initial")
		select {
		case <-named.Synced():
		default:
			t.Error("not synced after the initial objects")
		}
		s.Modify(configMap("a", "y"))
		synctest.Wait()
		expect("an update, by both states", "x updated a", "y updated a")
		s.Add(configMap("b", "panic"))
		s.Add(configMap("c", "z"))
		synctest.Wait()
		expect("a panic costs its own event", "z added c")
		s.DeleteDropWatch(configMap("a", "y"))
		s.ResetWatch()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := take(); !slices.Contains(got, "y deleted a") {
			t.Errorf("an unseen deletion: got %q, want the keys of the last state", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
		s.Add(configMap("d", "late"))
		synctest.Wait()
		expect("after the end")
		end()
		<-done
		s.Shutdown()
		if err := named.Run(t.Context(), nil); err == nil {
			t.Error("a source runs twice")
		}
	})
}

func TestSource_MisuseIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, i := newInformer()
		defer s.Shutdown()
		for what, src := range map[string]*clientgo.Source[source.Key]{
			"no name":     clientgo.NewSource("", i, source.Self),
			"no informer": clientgo.NewSource[source.Key]("Pod", nil, source.Self),
			"no mapper":   clientgo.NewSource[source.Key]("Pod", i, nil),
		} {
			if src.Err() == nil || src.Run(t.Context(), nil) == nil || source.ErrOf(source.Source[source.Key](src)) == nil {
				t.Errorf("%s: is taken without an error", what)
			}
		}
	})
}
