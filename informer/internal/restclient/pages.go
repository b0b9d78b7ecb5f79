// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"context"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// PageWithin limits the time from one page with objects to the next,
	// without waiting at the gate.
	PageWithin = 5 * time.Minute
	// mostEmpty is how many consecutive pages may be empty: a server sends an
	// empty page if it selects nothing from it.
	mostEmpty = 100
)

// pageTrail compares the pages of one list, so that a list that does not
// advance ends. The zero value is a new list. It is pure.
type pageTrail struct {
	N, empty int
	Version  string
	tokens   map[string]struct{}   // already followed
	firsts   map[kube.Key]struct{} // first object of each page
}

// add checks the next page of a list: its version, the token of the following
// page, its first object, and its number of objects including unreadable ones.
func (t *pageTrail) add(version, token string, first kube.Key, objects int) error {
	if t.N++; t.N == 1 {
		t.Version = version
	}
	if version != t.Version {
		return fmt.Errorf("the pages are of different versions, %s and %s: %w", t.Version, version, base.ErrMixed)
	}
	if t.empty++; objects > 0 {
		t.empty = 0
	}
	if t.empty > mostEmpty {
		return fmt.Errorf("%d pages in a row are empty: %w", t.empty, base.ErrStuck)
	}
	if first != (kube.Key{}) {
		if _, ok := t.firsts[first]; ok {
			return fmt.Errorf("page %d begins with %s as an earlier one does: %w", t.N, first, base.ErrStuck)
		}
		put(&t.firsts, first)
	}
	if token == "" {
		return nil
	}
	if _, ok := t.tokens[token]; ok {
		return fmt.Errorf("page %d leads to an earlier one: %w", t.N, base.ErrStuck)
	}
	put(&t.tokens, token)
	return nil
}

func put[K comparable](set *map[K]struct{}, k K) {
	if *set == nil {
		*set = make(map[K]struct{})
	}
	(*set)[k] = struct{}{}
}

// PageReader reads the pages of one list.
type PageReader struct {
	Lw    listwatch.ListerWatcher[kube.Object]
	Trail pageTrail
	left  time.Duration // for the next page with objects
}

// Read reads one page. It fails with ErrSlow if pages with objects are too
// slow, and with ErrStuck or ErrMixed if the pages do not belong together.
func (r *PageReader) Read(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[kube.Object], error) {
	if r.Trail.N == 0 && r.left == 0 {
		r.left = PageWithin
	}
	begun := time.Now()
	within, cancel := context.WithTimeoutCause(ctx, r.left, base.ErrSlow)
	defer cancel()
	page, err := r.Lw.List(within, opts)
	if err != nil {
		if within.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("list: page %d: %w", r.Trail.N+1, base.ErrSlow)
		}
		return page, err
	}
	r.left = max(r.left-time.Since(begun), time.Millisecond)
	var first kube.Key
	if len(page.Items) > 0 {
		first = page.Items[0].Key
	}
	objects := len(page.Items) + page.Unreadable + page.Foreign
	if objects > 0 {
		r.left = PageWithin
	}
	if err := r.Trail.add(page.ResourceVersion, page.Continue, first, objects); err != nil {
		return page, fmt.Errorf("list: %w", err)
	}
	return page, nil
}
