// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/pacing"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// list reads a whole list and replaces the scope's objects with it.
func (r *Reflector) list(ctx context.Context, p steps.Progress, pass *pacing.Pass) steps.Outcome {
	opts := listwatch.ListOptions{Limit: int64(max(1, int(r.opts.PageSize)>>(p.Halvings+p.Slows)))}
	if p.Whole {
		opts.Limit = 0
	}
	opts.ResourceVersion, opts.ResourceVersionMatch = p.ListVersion(r.opts.ListFromCache)
	replace := r.sink.replace(r.id)
	done := false
	defer func() {
		if !done {
			replace.Abort()
		}
	}()
	unreadable, size, foreign, pages := unreadables{}, 0, 0, restclient.PageReader{Lw: r.lw}
	for {
		page, err := pages.Read(ctx, opts)
		if errors.Is(err, pacing.ErrHeld) && r.nextPage(ctx, pass) == nil {
			continue
		}
		n := pages.Trail.N
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
		size, foreign = size+len(page.Items), foreign+page.Foreign
		r.Status.read(size)
		if err := r.fits(replace, size+foreign, page.Remaining); err != nil {
			return failed(err, false)
		}
		if page.Continue == "" {
			break
		}
		opts = listwatch.ListOptions{Limit: opts.Limit, Continue: page.Continue}
		if err := r.nextPage(ctx, pass); err != nil {
			return failed(err, true)
		}
	}
	done, r.size, r.kept = true, size, max(r.kept, replace.Heap())
	version := pages.Trail.Version
	r.contradicted(replace.Undone(kube.ParseVersion(version)))
	replace.Commit(kube.ParseVersion(version))
	r.Status.listed(kube.ParseVersion(version), unreadable)
	return steps.Outcome{Result: steps.ResultCompleted, Version: version}
}

// begins checks the version of a list that has begun. An older list than seen
// before is refused, or begins a new epoch.
func (r *Reflector) begins(replace replacement, p steps.Progress, version string) error {
	r.Status.recordContact()
	if !p.Instead {
		r.Status.enter(steps.PhaseList)
	}
	switch {
	case p.Epoch, p.Rewound(version):
		r.Status.wentBack(p.Last, version, p.Epoch)
		r.order, r.newest = streamOrder{}, shown{}
		replace.Epoch()
		r.reportEpoch()
	case steps.Below(version, p.Last):
		return r.refuse(p, version)
	case p.Behind > 0:
		r.Status.older(p.Behind)
	}
	if p.ByContent() {
		replace.Recompare()
	}
	return nil
}

// refuse returns the error of a list older than what was seen.
func (r *Reflector) refuse(p steps.Progress, version string) error {
	if !p.Consistent {
		r.Status.older(1)
	}
	return fmt.Errorf("list: the answer is of version %q, and %s was seen before: %w", version, p.Last, base.ErrOlder)
}

// contradicted handles objects that a newer list had in older versions than
// seen. Two such lists in a row, on two connections, prove that the server's
// versions went back and have since passed the scope's: the next list is
// accepted as it is.
func (r *Reflector) contradicted(keys []kube.Key) {
	if len(keys) == 0 {
		r.undone = 0
		return
	}
	r.undone++
	r.Status.undone(keys, r.undone > 1)
	r.Wants.Add(steps.Demand{Reason: steps.RelistUndone, Elsewhere: true, Epoch: r.undone > 1})
}

// listed adds item to the list, if it belongs to the scope.
func (r *Reflector) listed(replace replacement, item listwatch.Item[kube.Object]) {
	switch item.Anomaly {
	case base.Sound:
		replace.Add(r.delta(store.Replaced, item))
		return
	case base.Foreign:
		if left, may := r.left(item); may {
			replace.Remove(left)
		}
		return
	case base.OtherKind:
		// The object of that name may exist nevertheless.
		replace.Keep(item.Key)
	}
	r.Status.stranger(item.Anomaly, item.Key, item.Err)
}
