// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"time"
)

const (
	// pageWithin is how long a page may take, from the one before that brought
	// something. The time that requests wait at the gate does not count.
	pageWithin = 5 * time.Minute
	// mostEmpty pages in a row: where nothing of a page is selected, a server may
	// send an empty one.
	mostEmpty = 100
)

// pageTrail holds the pages of one list against each other, so that a list of
// which nothing new arrives comes to an end. Its zero value is that of a list
// that begins. It is pure.
type pageTrail struct {
	n, empty int
	version  string
	tokens   map[string]struct{} // that led to a page
	firsts   map[Key]struct{}    // the first object of each page
}

// add says what is wrong with the next page, of a list of version, which begins
// with the object first and leads to the next one by token. objects are those of
// the page, unreadable ones among them.
func (t *pageTrail) add(version, token string, first Key, objects int) error {
	if t.n++; t.n == 1 {
		t.version = version
	}
	if version != t.version {
		return fmt.Errorf("the pages are of different versions, %s and %s: %w", t.version, version, errMixed)
	}
	if t.empty++; objects > 0 {
		t.empty = 0
	}
	if t.empty > mostEmpty {
		return fmt.Errorf("%d pages in a row are empty: %w", t.empty, errStuck)
	}
	if first != (Key{}) {
		if _, ok := t.firsts[first]; ok {
			return fmt.Errorf("page %d begins with %s as an earlier one does: %w", t.n, first, errStuck)
		}
		put(&t.firsts, first)
	}
	if token == "" {
		return nil
	}
	if _, ok := t.tokens[token]; ok {
		return fmt.Errorf("page %d leads to an earlier one: %w", t.n, errStuck)
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

// pageReader reads the pages of one list, of a ListerWatcher.
type pageReader[T Object] struct {
	lw    ListerWatcher[T]
	trail pageTrail
	left  time.Duration // for the next page that brings something
}

// read gets one page. It fails with errSlow when pages that bring something
// are too slow, with errStuck and errMixed when they do not belong together.
func (r *pageReader[T]) read(ctx context.Context, opts ListOptions) (Page[T], error) {
	if r.trail.n == 0 && r.left == 0 {
		r.left = pageWithin
	}
	begun := time.Now()
	within, cancel := context.WithTimeoutCause(ctx, r.left, errSlow)
	defer cancel()
	page, err := r.lw.List(within, opts)
	if err != nil {
		if within.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("list: page %d: %w", r.trail.n+1, errSlow)
		}
		return page, err
	}
	r.left = max(r.left-time.Since(begun), time.Millisecond)
	var first Key
	if len(page.Items) > 0 {
		first = page.Items[0].Key
	}
	objects := len(page.Items) + page.Unreadable
	if objects > 0 {
		r.left = pageWithin
	}
	if err := r.trail.add(page.ResourceVersion, page.Continue, first, objects); err != nil {
		return page, fmt.Errorf("list: %w", err)
	}
	return page, nil
}
