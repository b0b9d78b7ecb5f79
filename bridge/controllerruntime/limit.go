// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/flyball-dev/flyball/informer"
)

// ReadLimitError refuses a cached read that would start an informer whose objects take more than
// CacheOptions.ReadLimit. No informer was started.
type ReadLimitError struct {
	Kind schema.GroupVersionKind
	// Objects that the informer would have, and their estimated size in bytes.
	Objects, Bytes int64
	// Limit is CacheOptions.ReadLimit.
	Limit int64
	// Caller is the line of the read, as file:line.
	Caller string
}

func (e *ReadLimitError) Error() string {
	return fmt.Sprintf("cached read of %s at %s: an informer would hold about %d bytes in %d objects, more than CacheOptions.ReadLimit of %d; "+
		"watch the kind on purpose (a controller's For, Owns or Watches, or GetInformer), read it with the manager's API reader, "+
		"or select less with cache.Options.ByObject", e.Kind, e.Caller, e.Bytes, e.Objects, e.Limit)
}

// readLimit bounds the informers that reads start.
type readLimit struct {
	bytes  int64        // 0: no bound
	server *rest.Config // goes through the HTTP client of the cache
	mu     struct {
		sync.Mutex
		refused map[id]refusal
	}
}

type refusal struct {
	because ReadLimitError
	at      time.Time
}

// refusedFor is how long a refusal holds before the objects are counted again.
const refusedFor = time.Minute

// earlier returns the refusal of a kind that still holds.
func (l *readLimit) earlier(i id, now time.Time) (because ReadLimitError, holds bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.mu.refused[i]
	return r.because, ok && now.Sub(r.at) < refusedFor
}

// refuse remembers a refusal, and reports whether it is the first of the kind.
func (l *readLimit) refuse(i id, because ReadLimitError, now time.Time) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.refused == nil {
		l.mu.refused = make(map[id]refusal)
	}
	_, again := l.mu.refused[i]
	l.mu.refused[i] = refusal{because, now}
	return !again
}

// afford returns an error if a read may not start the informer of i, where reads have a limit.
func (c *kinds) afford(ctx context.Context, i id) error {
	if !c.hasBegun() {
		return &cache.ErrCacheNotStarted{}
	}
	because, refused := c.limit.earlier(i, time.Now())
	if !refused {
		objects, bytes, err := c.estimate(ctx, i)
		if err != nil || bytes <= c.limit.bytes {
			return err
		}
		because = ReadLimitError{Kind: i.kind, Objects: objects, Bytes: bytes, Limit: c.limit.bytes}
	}
	because.Caller = caller()
	if !refused && c.limit.refuse(i, because, time.Now()) {
		c.log.Info("A cached read is refused, because its informer would exceed CacheOptions.ReadLimit; watch the kind, or use the API reader",
			"kind", i.kind, "caller", because.Caller, "objects", because.Objects, "bytes", because.Bytes, "limit", because.Limit)
	}
	return &because
}

// estimate asks the server how many objects the informer of i would have, and how large they are
// if all are like the first one. What cannot be listed, is left to the informer to say.
func (c *kinds) estimate(ctx context.Context, i id) (objects, bytes int64, err error) {
	mapping, err := c.Mapper.RESTMapping(i.kind.GroupKind(), i.kind.Version)
	if err != nil {
		return 0, 0, nil
	}
	if i.form == metadataForm {
		if _, watched := c.factory.WatchedKind(mapping.Resource); watched {
			return 0, 0, nil // it shares that watch
		}
	}
	client, err := apiutil.RESTClientForGVK(i.kind, true, false, c.limit.server, serializer.NewCodecFactory(c.Scheme), c.HTTPClient)
	if err != nil {
		return 0, 0, fmt.Errorf("count the objects of %s for CacheOptions.ReadLimit: %w", i.kind, err)
	}
	for _, s := range c.planOf(i.kind, mapping.Scope.Name() == meta.RESTScopeNameNamespace).scopes() {
		n, size, err := c.first(ctx, client, mapping.Resource.Resource, i, s)
		switch {
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		case err != nil:
			return 0, 0, fmt.Errorf("count the objects of %s for CacheOptions.ReadLimit: %w", i.kind, err)
		}
		objects, bytes = objects+n, bytes+n*size
	}
	return objects, bytes, nil
}

// first returns how many objects a scope has, and the size of the first one; of those that the
// server returns, if it ignores the limit. With a selector it does not count those that remain.
func (c *kinds) first(ctx context.Context, client rest.Interface, resource string, i id, s informer.Scope) (n, size int64, err error) {
	accept := "application/json"
	if i.form == metadataForm {
		accept += ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	}
	request := client.Get().Resource(resource).SetHeader("Accept", accept).Param("limit", "1").
		Param("labelSelector", s.LabelSelector).Param("fieldSelector", s.FieldSelector)
	if len(s.Namespaces) > 0 {
		request = request.Namespace(s.Namespaces[0])
	}
	text, err := request.Do(ctx).Raw()
	if err != nil {
		return 0, 0, err
	}
	var page struct {
		Metadata struct {
			RemainingItemCount int64 `json:"remainingItemCount"`
		} `json:"metadata"`
		Items []struct {
			Metadata map[string]json.RawMessage `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal(text, &page); err != nil || len(page.Items) == 0 {
		return 0, 0, err
	}
	size = int64(len(text))
	for _, item := range page.Items {
		if c.stripped {
			size -= int64(len(item.Metadata["managedFields"]))
		}
	}
	sent := int64(len(page.Items))
	return sent + page.Metadata.RemainingItemCount, size / sent, nil
}

// announce logs what an informer takes that a read has started, once it is synced.
func (c *kinds) announce(e *entry) {
	if e.reader.Load() == nil { // as in almost every read
		return
	}
	at := e.reader.Swap(nil)
	if at == nil {
		return
	}
	is := e.informer.Snapshot()
	c.log.Info("The informer that a cached read has started is synced", "kind", e.kind, "caller", *at, "objects", is.Objects, "bytes", is.Heap)
}
