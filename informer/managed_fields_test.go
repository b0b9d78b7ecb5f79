// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// dropping says in the answer's media type that managedFields are dropped.
type dropping struct{ http.ResponseWriter }

func (d dropping) mark() {
	h := d.Header()
	if media := h.Get("Content-Type"); !strings.Contains(media, "drop=") {
		h.Set("Content-Type", media+";drop=metadata.managedFields")
	}
}

func (d dropping) WriteHeader(code int) {
	d.mark()
	d.ResponseWriter.WriteHeader(code)
}

func (d dropping) Write(p []byte) (int, error) {
	d.mark()
	return d.ResponseWriter.Write(p)
}

func (d dropping) Flush() { d.ResponseWriter.(http.Flusher).Flush() }

// A server may send managedFields although it was asked not to, say in its answer that it does not,
// and do either, or send none although they are wanted. Each object is stored as it comes, without
// those that are not wanted.
func TestInformer_ServerSendsOrDropsManagedFieldsAnyway_D4(t *testing.T) {
	for _, keep := range []bool{false, true} {
		for _, sent := range []bool{false, true} {
			for _, says := range []bool{false, true} {
				t.Run(fmt.Sprintf("keep %v sent %v says %v", keep, sent, says), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { managedFieldsAnyway(t, keep, sent, says) })
				})
			}
		}
	}
}

func managedFieldsAnyway(t *testing.T, keep, sent, says bool) {
	in := func(name, version string) *corev1.ConfigMap {
		cm := fixture.ConfigMap(name, version)
		if !sent {
			cm.ManagedFields = nil
		}
		return cm
	}
	answer := func(next fixture.Answer) fixture.Answer {
		return func(w http.ResponseWriter, r *http.Request) {
			if asked := strings.Contains(r.Header.Get("Accept"), "drop="); asked == keep {
				t.Errorf("the Accept header is %q, want that managedFields are asked for: %v", r.Header.Get("Accept"), keep)
			}
			if says {
				w = dropping{w}
			}
			next(w, r)
		}
	}
	server := fixture.Serve(t, answer(fixture.Page(t, "6", "", in("a", "5"), in("b", "6"))), answer(fixture.Watch(fixture.Hang, fixture.Wire(t, listwatch.FrameModified, in("a", "7")), fixture.Wire(t, listwatch.FrameAdded, in("c", "8")))))
	f, _ := factoryOn(t, server, Options{PagedLists: true, KeepManagedFields: keep})
	maps := For[*corev1.ConfigMap](f)
	defer runFactory(t, f)()
	<-maps.Synced()
	time.Sleep(time.Second)
	if got, want := keysOf(maps), "prod/a@7 prod/b@6 prod/c@8"; got != want {
		t.Errorf("the Lister has %q, want %q", got, want)
	}
	for _, name := range []string{"a", "b", "c"} {
		cm, err := maps.Lister().Get(kube.Key{Namespace: "prod", Name: name})
		if err != nil || cm.Data["key"] != name || (len(cm.ManagedFields) == 1) != (keep && sent) {
			t.Errorf("%s is %v with %v, want its data, and managedFields: %v", name, cm, err, keep && sent)
		}
	}
	if s := maps.Snapshot().Scopes[0]; s.State != state.Live {
		t.Errorf("the state is %s", s)
	}
}
