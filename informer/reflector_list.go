// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
)

// list reads a whole list and replaces the scope's objects by it.
func (r *Reflector[T]) list(ctx context.Context, p progress, pass *pass) outcome {
	opts := ListOptions{Limit: int64(max(1, int(r.opts.PageSize)>>(p.halvings+p.slows)))}
	if p.whole {
		opts.Limit = 0
	}
	opts.ResourceVersion, opts.ResourceVersionMatch = p.listVersion(r.opts.ListFromCache)
	replace := r.sink.replace(r.id)
	done := false
	defer func() {
		if !done {
			replace.Abort()
		}
	}()
	unreadable, size, pages := unreadables{}, 0, pageReader[T]{lw: r.lw}
	for {
		page, err := pages.read(ctx, opts)
		if errors.Is(err, errHeld) && r.nextPage(ctx, pass) == nil {
			continue
		}
		n := pages.trail.n
		if err == nil && n == 1 {
			err = r.begins(replace, p, page.ResourceVersion)
		}
		if err != nil {
			return failed(err, n > 0)
		}
		for _, item := range page.Items {
			r.listed(replace, item)
		}
		if page.Unreadable > 0 {
			unreadable.add(page.Unreadable, page.UnreadableErr)
			replace.Unreadable()
		}
		size += len(page.Items)
		r.status.read(size)
		if page.Continue == "" {
			break
		}
		opts = ListOptions{Limit: opts.Limit, Continue: page.Continue}
		if err := r.nextPage(ctx, pass); err != nil {
			return failed(err, true)
		}
	}
	done, r.size = true, size
	version := pages.trail.version
	r.contradicted(replace.Undone(ParseVersion(version)))
	replace.Commit(ParseVersion(version))
	r.status.listed(ParseVersion(version), unreadable)
	return outcome{result: resultCompleted, version: version}
}

// begins looks at the version of a list that has begun. A list that is older
// than what was seen is refused, or begins a new epoch.
func (r *Reflector[T]) begins(replace replacement[T], p progress, version string) error {
	r.status.heard()
	if !p.instead {
		r.status.enter(phaseList)
	}
	switch {
	case p.epoch, p.rewound(version):
		r.status.wentBack(p.last, version, p.epoch)
		r.order = streamOrder{}
		replace.Epoch()
		r.noteEpoch()
	case below(version, p.last):
		return r.refuse(p, version)
	case p.behind > 0:
		r.status.older(p.behind)
	}
	if p.byContent() {
		replace.Recompare()
	}
	return nil
}

// refuse is the error of a list that is older than what was seen before.
func (r *Reflector[T]) refuse(p progress, version string) error {
	if !p.consistent {
		r.status.older(1)
	}
	return fmt.Errorf("list: the answer is of version %q, and %s was seen before: %w", version, p.last, errOlder)
}

// contradicted looks at the objects that a list had in older versions than were
// seen, although the list is newer. Two lists in a row, by two connections,
// prove that the server's versions went back and have passed the scope's again: the
// next one is taken as it is.
func (r *Reflector[T]) contradicted(keys []Key) {
	if len(keys) == 0 {
		r.undone = 0
		return
	}
	r.undone++
	r.status.undone(keys, r.undone > 1)
	r.wants.add(demand{reason: relistUndone, elsewhere: true, epoch: r.undone > 1})
}
