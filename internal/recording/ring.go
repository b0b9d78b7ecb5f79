// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/internal/sleep"
)

const (
	defaultEvery = 10 * time.Minute
	leastEvery   = time.Minute
	defaultKeep  = 6
	ringLimit    = 64 << 20
	again        = time.Minute // after a failure, or a Window of somebody else
	unfinished   = ".part"     // of a file that is being written, or was when the program died
	suffix       = ".tar.gz"
)

// Ring is one recording after another in a directory, of which the oldest are removed. Each begins
// with the state of all informers, so that each can be replayed alone.
type Ring struct {
	Dir   string
	Every time.Duration // of one; 0: 10 minutes
	Keep  int           // files; 0: 6
	Options
}

// Misuse returns an error if r is invalid.
func (r Ring) Misuse() error {
	_, err := newWindow(r.Options)
	switch {
	case r.Dir == "":
		return errors.New("Dir is empty; name a directory that outlives the process, such as a mounted volume")
	case r.Every != 0 && r.Every < leastEvery:
		return fmt.Errorf("Every is %v; give at least %v, or 0 for %v: each recording begins with all objects", r.Every, leastEvery, defaultEvery)
	case r.Keep < 0:
		return fmt.Errorf("Keep is %d; give a number of recordings, or 0 for %d", r.Keep, defaultKeep)
	}
	return err
}

// Run records until ctx ends. It returns nil: what it cannot write it logs.
func (r Ring) Run(ctx context.Context, to *Recorder, log logr.Logger) error {
	r.Every, r.Keep, r.Limit = cmp.Or(r.Every, defaultEvery), cmp.Or(r.Keep, defaultKeep), cmp.Or(r.Limit, ringLimit)
	for ctx.Err() == nil {
		err := r.one(ctx, to)
		if err != nil && !errors.Is(err, ErrStopped) && ctx.Err() == nil {
			log.Error(err, "Cannot keep a recording; trying again", "directory", r.Dir, "wait", again.String())
		}
		if errors.Is(err, ErrStopped) || err != nil && !sleep.For(ctx, again) {
			break
		}
	}
	return nil
}

// one makes one recording.
func (r Ring) one(ctx context.Context, to *Recorder) error {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return err
	}
	if err := r.removeOld(); err != nil {
		return err
	}
	w, err := to.Open(r.Options)
	if err != nil {
		return err
	}
	path := filepath.Join(r.Dir, "flyball-"+w.began.UTC().Format("20060102T150405.000000Z")+suffix)
	file, err := os.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		to.close(w)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Every)
	defer cancel()
	if err = errors.Join(w.Write(ctx, file), file.Close()); err != nil {
		return err
	}
	return os.Rename(path+unfinished, path)
}

// removeOld removes all but the newest, so that with the next there are r.Keep.
func (r Ring) removeOld() error {
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return err
	}
	var names []string // the oldest first
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "flyball-") && strings.HasSuffix(strings.TrimSuffix(name, unfinished), suffix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names[:max(0, len(names)-r.Keep+1)] {
		if err := os.Remove(filepath.Join(r.Dir, name)); err != nil {
			return err
		}
	}
	return nil
}
