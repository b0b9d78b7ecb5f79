// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubesharding "k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// yard serves ConfigMaps and selects them by shards as kube-apiserver does with the gate
// ShardedListAndWatch, while that is on.
type yard struct {
	*fixture.Server
	t    *testing.T
	json bool // answers in JSON
	mu   struct {
		sync.Mutex
		off       bool // the gate
		version   int
		objects   map[kube.Key]*corev1.ConfigMap
		history   []yardEvent
		changed   chan struct{} // closed with each change
		cut       chan struct{} // ends the open watches
		held      chan struct{} // lists wait until it is closed; nil: they do not
		forbidden bool
		muted     bool     // watches deliver nothing
		lists     []string // the selectors of the lists that began; the probes are "probe"
		watches   int
	}
}

type yardEvent struct {
	typ     listwatch.FrameType
	version int
	object  *corev1.ConfigMap
}

func newYard(t *testing.T) *yard {
	s := &yard{t: t}
	s.mu.version = 100
	s.mu.objects = map[kube.Key]*corev1.ConfigMap{}
	s.mu.changed, s.mu.cut = make(chan struct{}), make(chan struct{})
	s.Server = fixture.Serve(t, s.answer)
	return s
}

// put writes the object of key. A new one has the given owner, if that is not empty.
func (s *yard) put(key kube.Key, owner string) *corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.version++
	typ, o := listwatch.FrameModified, fixture.ConfigMap(key.Name, strconv.Itoa(s.mu.version))
	o.Namespace, o.UID = key.Namespace, types.UID(fmt.Sprint("uid-", key.Name, "-", s.mu.version))
	o.Data = map[string]string{"v": o.ResourceVersion}
	if was := s.mu.objects[key]; was != nil {
		o.UID = was.UID
	} else {
		typ = listwatch.FrameAdded
	}
	if owner != "" {
		is := true
		o.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: "no", UID: "not-the-controller"},
			{APIVersion: "v1", Kind: "Pod", Name: owner, UID: types.UID(owner), Controller: &is},
		}
	}
	s.mu.objects[key] = o
	s.changeLocked(typ, o)
	return o.DeepCopy()
}

func (s *yard) remove(key kube.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.mu.objects[key]
	if o == nil {
		return
	}
	delete(s.mu.objects, key)
	s.mu.version++
	o = o.DeepCopy()
	o.ResourceVersion = strconv.Itoa(s.mu.version)
	s.changeLocked(listwatch.FrameDeleted, o)
}

func (s *yard) changeLocked(typ listwatch.FrameType, o *corev1.ConfigMap) {
	s.mu.history = append(s.mu.history, yardEvent{typ, s.mu.version, o})
	close(s.mu.changed)
	s.mu.changed = make(chan struct{})
}

// switchGate switches the gate. Open watches keep their selectors.
func (s *yard) switchGate(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.off = !on
}

// cutWatches ends the open watches.
func (s *yard) cutWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.mu.cut)
	s.mu.cut = make(chan struct{})
}

// holdLists makes lists wait until the returned function is called.
func (s *yard) holdLists() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.mu.held = held
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.held = nil
		close(held)
	}
}

// mute makes watches deliver nothing, or ends that.
func (s *yard) mute(muted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.muted = muted
	close(s.mu.changed)
	s.mu.changed = make(chan struct{})
}

// begunLists returns the selectors of the lists since the last call.
func (s *yard) begunLists() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lists := s.mu.lists
	s.mu.lists = nil
	return lists
}

func (s *yard) all() map[kube.Key]*corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.mu.objects)
}

// selectorOf returns what a request selects; nil: everything.
func selectorOf(q url.Values) kubesharding.Selector {
	var all []kubesharding.ShardRangeRequirement
	for one := range strings.SplitSeq(q.Get("shardSelector"), " || ") {
		part := strings.Split(one, "'")
		if len(part) != 5 {
			return nil
		}
		all = append(all, kubesharding.ShardRangeRequirement{
			Key: strings.Trim(strings.TrimPrefix(part[0], "shardRange("), ", "), Start: part[1], End: part[3],
		})
	}
	return kubesharding.NewSelector(all...)
}

func (s *yard) answer(w http.ResponseWriter, r *http.Request) {
	ns, q := namespaceOf(r), r.URL.Query()
	s.mu.Lock()
	selector := selectorOf(q)
	if s.mu.off {
		selector = nil
	}
	has := func(o *corev1.ConfigMap) bool {
		selected := selector == nil
		if !selected {
			selected, _ = selector.Matches(o)
		}
		return selected && (ns == "" || ns == o.Namespace)
	}
	streams, probe := q.Get("sendInitialEvents") == "true", q.Get("limit") == "1"
	if s.mu.forbidden {
		s.mu.Unlock()
		fixture.Body(http.StatusForbidden, "application/json", `{"kind":"Status","apiVersion":"v1","code":403,"reason":"Forbidden","message":"no"}`)(w, r)
		return
	}
	held := s.mu.held
	switch {
	case probe:
		s.mu.lists, held = append(s.mu.lists, "probe"), nil
	case streams || q.Get("watch") == "":
		s.mu.lists = append(s.mu.lists, q.Get("shardSelector"))
	default:
		held = nil
	}
	s.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	if q.Get("watch") == "true" {
		s.watch(w, r, streams, has)
		return
	}
	s.list(w, r, selector, has)
}

func (s *yard) peer(r *http.Request) fixture.Peer {
	if s.json || !strings.Contains(r.Header.Get("Accept"), "protobuf") {
		return fixture.JSONPeer(fixture.TestScheme())
	}
	return fixture.ProtobufPeer(fixture.TestScheme())
}

func (s *yard) list(w http.ResponseWriter, r *http.Request, selector kubesharding.Selector, has func(*corev1.ConfigMap) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	list.ResourceVersion = strconv.Itoa(s.mu.version)
	if selector != nil {
		list.ShardInfo = &metav1.ShardInfo{Selector: selector.String()}
	}
	for _, key := range s.keysLocked() {
		if o := s.mu.objects[key]; has(o) {
			list.Items = append(list.Items, *o)
		}
	}
	q := r.URL.Query()
	from, _ := strconv.Atoi(q.Get("continue"))
	list.Items = list.Items[min(from, len(list.Items)):]
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && limit < len(list.Items) {
		list.Items, list.Continue = list.Items[:limit], strconv.Itoa(from+limit)
	}
	peer := s.peer(r)
	w.Header().Set("Content-Type", peer.Media)
	_, _ = w.Write(peer.Encode(s.t, list))
}

func (s *yard) keysLocked() []kube.Key {
	return slices.SortedFunc(maps.Keys(s.mu.objects), kube.CompareKeys)
}

func (s *yard) watch(w http.ResponseWriter, r *http.Request, streams bool, has func(*corev1.ConfigMap) bool) {
	peer, since := s.peer(r), 0
	send := func(typ listwatch.FrameType, o runtime.Object) {
		_, _ = w.Write(peer.Frame(s.t, typ, o))
	}
	w.Header().Set("Content-Type", peer.Media+";stream=watch")
	w.WriteHeader(http.StatusOK)
	s.mu.Lock()
	cut := s.mu.cut
	s.mu.watches++
	if since, _ = strconv.Atoi(r.URL.Query().Get("resourceVersion")); streams {
		since = s.mu.version
		for _, key := range s.keysLocked() {
			if o := s.mu.objects[key]; has(o) {
				send(listwatch.FrameAdded, o)
			}
		}
		mark := fixture.ConfigMap("", strconv.Itoa(since))
		mark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		send(listwatch.FrameBookmark, mark)
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.watches--
	}()
	for {
		s.mu.Lock()
		news, changed := slices.Clone(s.mu.history), s.mu.changed
		if s.mu.muted {
			news = nil
		}
		s.mu.Unlock()
		for _, e := range news {
			if e.version > since && has(e.object) {
				send(e.typ, e.object)
			}
			since = max(since, e.version)
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}
