// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"context"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

const (
	// PageWithin is how long a page may take, from the one before that brought
	// something. The time that requests wait at the gate does not count.
	PageWithin = 5 * time.Minute
	// mostEmpty pages in a row: where nothing of a page is selected, a server may
	// send an empty one.
	mostEmpty = 100
)

// pageTrail holds the pages of one list against each other, so that a list of
// which nothing new arrives comes to an end. Its zero value is that of a list
// that begins. It is pure.
type pageTrail struct {
	N, empty int
	Version  string
	tokens   map[string]struct{}   // that led to a page
	firsts   map[base.Key]struct{} // the first object of each page
}

// add says what is wrong with the next page, of a list of version, which begins
// with the object first and leads to the next one by token. objects are those of
// the page, unreadable ones among them.
func (t *pageTrail) add(version, token string, first base.Key, objects int) error {
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
	if first != (base.Key{}) {
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

// PageReader reads the pages of one list, of a ListerWatcher.
type PageReader[T base.Object] struct {
	Lw    listwatch.ListerWatcher[T]
	Trail pageTrail
	left  time.Duration // for the next page that brings something
}

// Read gets one page. It fails with errSlow when pages that bring something
// are too slow, with errStuck and errMixed when they do not belong together.
func (r *PageReader[T]) Read(ctx context.Context, opts listwatch.ListOptions) (listwatch.Page[T], error) {
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
	var first base.Key
	if len(page.Items) > 0 {
		first = page.Items[0].Key
	}
	objects := len(page.Items) + page.Unreadable
	if objects > 0 {
		r.left = PageWithin
	}
	if err := r.Trail.add(page.ResourceVersion, page.Continue, first, objects); err != nil {
		return page, fmt.Errorf("list: %w", err)
	}
	return page, nil
}
