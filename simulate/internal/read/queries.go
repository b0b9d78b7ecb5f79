// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	internalversionvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	apiserversharding "k8s.io/apiserver/pkg/sharding"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// watchTimeout is how long a watch stays open that names no timeout.
const watchTimeout = 30 * time.Minute

// Target is the path of a request. Only a watch may have a name.
type Target struct {
	Kind            *kinds.Kind
	Namespace, Name string // empty: all
	// NoStreams: the server has not the feature gate WatchList.
	NoStreams bool
}

// Query is the query of a request, with defaults and validated.
type Query struct {
	target Target
	opts   *internalversion.ListOptions
	shard  sharding.Selector // nil: any
}

// Parse reads the query of a request. It refuses fields by which objects of the kind
// cannot be selected.
func Parse(of Target, values url.Values, watch bool) (*Query, error) {
	opts := &internalversion.ListOptions{}
	if err := internalversionscheme.ParameterCodec.DecodeParameters(values, metav1.SchemeGroupVersion, opts); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	opts.Watch = watch
	internalversion.SetListOptionsDefaults(opts, true)
	if errs := internalversionvalidation.ValidateListOptions(opts, !of.NoStreams); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	if opts.FieldSelector != nil {
		var err error
		if opts.FieldSelector, err = opts.FieldSelector.Transform(of.Kind.FieldLabel); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	q := &Query{target: of, opts: opts}
	return q, q.selectName()
}

// selectName adds the name in the path of a watch to its field selector.
func (q *Query) selectName() error {
	if q.target.Name == "" {
		return nil
	}
	if q.opts.FieldSelector == nil || q.opts.FieldSelector.Empty() {
		q.opts.FieldSelector = fields.OneTermEqualSelector("metadata.name", q.target.Name)
		return nil
	}
	if selected, ok := q.opts.FieldSelector.RequiresExactMatch("metadata.name"); !ok || selected != q.target.Name {
		return apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
	}
	return nil
}

// SelectShard adds the query's shard selector to the selection, as a server with the feature
// gate ShardedListAndWatch does. Without it the query selects the objects of all shards, as
// for other servers.
func (q *Query) SelectShard() (err error) {
	if q.opts.ShardSelector == "" {
		return nil
	}
	if q.shard, err = apiserversharding.Parse(q.opts.ShardSelector); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid shard selector: %v", err))
	}
	return nil
}

// Selection returns which objects the query selects.
func (q *Query) Selection() Selection {
	s := Selection{Kind: q.target.Kind, Namespace: q.target.Namespace, shard: q.shard}
	if q.opts.LabelSelector != nil && !q.opts.LabelSelector.Empty() {
		s.labels = q.opts.LabelSelector
	}
	if q.opts.FieldSelector != nil && !q.opts.FieldSelector.Empty() {
		s.fields = q.opts.FieldSelector
	}
	return s
}

// Page is the part of a list that a query asks for, and the state that the list shows.
type Page struct {
	revisions.Span
	Limit    int   // 0: no limit
	Revision int64 // 0: none given
	Exact    bool  // shows Revision and no other
	Newest   bool  // shows the state of the store, not of the cache
	Follows  bool  // continues an earlier page
}

// Page returns the page of a list.
func (q *Query) Page() (Page, error) {
	namespace := q.target.Namespace
	p := Page{Span: revisions.SpanOf(namespace, ""), Limit: int(max(q.opts.Limit, 0))}
	name, single := "", false
	if q.opts.FieldSelector != nil && (namespace != "" || !q.target.Kind.Namespaced) {
		name, single = q.opts.FieldSelector.RequiresExactMatch("metadata.name")
	}
	if single { // which needs no pages
		p.Limit, p.Span = 0, revisions.SpanOfOne(types.NamespacedName{Namespace: namespace, Name: name})
	} else if q.opts.Continue != "" {
		return q.following(p)
	}
	var err error
	if p.Revision, err = ParseRevision(q.opts.ResourceVersion); err != nil {
		return p, apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	match := q.opts.ResourceVersionMatch
	p.Newest = q.opts.ResourceVersion == ""
	p.Exact = match == metav1.ResourceVersionMatchExact || match == "" && p.Limit > 0 && p.Revision > 0
	if q.opts.ResourceVersion == "0" {
		p.Limit = 0 // the cache ignores limits
	}
	return p, nil
}

// following returns the page that a continue token leads to.
func (q *Query) following(p Page) (Page, error) {
	revision, start, err := parseContinue(q.opts.Continue)
	if err != nil {
		return p, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	}
	if q.opts.ResourceVersion != "" && q.opts.ResourceVersion != "0" {
		return p, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	p.Follows, p.Span = true, revisions.SpanOf(q.target.Namespace, start)
	if q.opts.ResourceVersion == "0" {
		p.Limit = 0
	}
	if revision > 0 {
		p.Revision, p.Exact = revision, true
	}
	return p, nil
}

// Watch is what a watch asks for besides a selection.
type WatchQuery struct {
	Revision  int64
	Given     bool // a resourceVersion was given
	Initial   bool // the present objects are sent first
	Bookmarks bool
	Timeout   time.Duration // negative: the watch ends at once
}

// Watch returns the parameters of a watch.
func (q *Query) Watch() (w WatchQuery, err error) {
	if w.Revision, err = ParseRevision(q.opts.ResourceVersion); err != nil {
		return w, err
	}
	w.Given, w.Bookmarks = q.opts.ResourceVersion != "", q.opts.AllowWatchBookmarks
	w.Initial = q.opts.SendInitialEvents != nil && *q.opts.SendInitialEvents
	w.Timeout = watchTimeout
	if q.opts.TimeoutSeconds != nil && *q.opts.TimeoutSeconds != 0 {
		w.Timeout = time.Duration(*q.opts.TimeoutSeconds) * time.Second
	}
	return w, nil
}

// ParseRevision reads a resourceVersion. Empty is 0.
func ParseRevision(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, refusal.Plain(fmt.Errorf("resourceVersion: Invalid value: %q: %w", text, err))
	}
	return int64(min(n, math.MaxInt64)), nil
}
