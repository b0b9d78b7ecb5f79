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
	mostEvery    = 24 * time.Hour // less than Read accepts
	defaultKeep  = 6
	ringLimit    = 64 << 20
	again        = time.Minute    // after a failure, or from one that begins until the next, if it is full
	forgotten    = 48 * time.Hour // after which files of other hosts are removed
	unfinished   = ".part"        // of a file that is being written, or was when the program died
	prefix       = "flyball-"
	stamp        = "20060102T150405.000000Z"
	suffix       = ".tar.gz"
)

// Ring is one recording after another in a directory, of which the oldest are removed. Each begins
// with the state of all informers, so that each can be replayed alone. A Window that another
// opens ends that of the Ring, which goes on after it. Files have the name of the host, so that
// processes can share a directory.
type Ring struct {
	Dir   string
	Every time.Duration // of one, at most a day; 0: 10 minutes
	Keep  int           // files, besides the one that is being written; 0: 6
	Options
}

// Misuse returns an error if r is invalid.
func (r Ring) Misuse() error {
	_, err := newWindow(r.Options)
	switch {
	case r.Dir == "":
		return errors.New("its Dir is empty; name a directory that outlives the process, such as a mounted volume")
	case r.Every != 0 && r.Every < leastEvery:
		return fmt.Errorf("its Every is %v; give at least %v, or 0 for %v: each recording begins with all objects", r.Every, leastEvery, defaultEvery)
	case r.Keep < 0:
		return fmt.Errorf("its Keep is %d; give a number of recordings, or 0 for %d", r.Keep, defaultKeep)
	}
	return err
}

// Run records until ctx ends. It returns nil: what it cannot write it logs.
func (r Ring) Run(ctx context.Context, to *Recorder, log logr.Logger) error {
	r.Every, r.Keep, r.Limit = min(cmp.Or(r.Every, defaultEvery), mostEvery), cmp.Or(r.Keep, defaultKeep), cmp.Or(r.Limit, ringLimit)
	r.Yields = true
	small := false // which has been logged
	for ctx.Err() == nil {
		began := time.Now()
		full, err := r.one(ctx, to)
		wait := again - time.Since(began)
		switch {
		case errors.Is(err, ErrStopped):
			return nil
		case errors.Is(err, ErrOpen):
			to.wait(ctx)
		case err != nil && ctx.Err() == nil:
			log.Error(err, "Cannot keep a recording; trying again", "directory", r.Dir, "wait", again.String())
			sleep.For(ctx, again)
		case full && wait > 0:
			if !small {
				log.Info("A recording reached its limit within a minute; raise it", "directory", r.Dir, "bytes", r.Limit)
			}
			small = true
			sleep.For(ctx, wait)
		}
	}
	return nil
}

// one makes one recording. full: it has reached its limit.
func (r Ring) one(ctx context.Context, to *Recorder) (full bool, err error) {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return false, err
	}
	host := hostName()
	if err := r.removeOld(host); err != nil {
		return false, err
	}
	w, err := to.Open(r.Options)
	if err != nil {
		return false, err
	}
	defer w.drop()
	path := filepath.Join(r.Dir, prefix+host+"-"+w.began.UTC().Format(stamp)+suffix)
	file, err := os.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Every)
	defer cancel()
	if err = errors.Join(w.Write(ctx, file), file.Close()); err != nil {
		return false, errors.Join(err, os.Remove(path+unfinished))
	}
	return w.isFull(), os.Rename(path+unfinished, path)
}

// removeOld removes all files of this host but the newest r.Keep, and those that other hosts left
// long ago. A recording that failed has left none, so that a failing disk does not cost good ones.
func (r Ring) removeOld(host string) error {
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return err
	}
	var own, old []string // the oldest first
	for _, e := range entries {
		of, began, ok := parseName(e.Name())
		switch {
		case ok && of == host:
			own = append(own, e.Name())
		case ok && time.Since(began) > max(forgotten, time.Duration(r.Keep+1)*r.Every):
			old = append(old, e.Name())
		}
	}
	slices.Sort(own)
	for _, name := range append(old, own[:max(0, len(own)-r.Keep)]...) {
		if err := os.Remove(filepath.Join(r.Dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// parseName reads the name of a file of a Ring.
func parseName(name string) (host string, began time.Time, ok bool) {
	rest, ok := strings.CutSuffix(strings.TrimSuffix(name, unfinished), suffix)
	at := strings.LastIndexByte(rest, '-')
	if !ok || !strings.HasPrefix(rest, prefix) || at < len(prefix) {
		return "", began, false
	}
	began, err := time.Parse(stamp, rest[at+1:])
	return rest[len(prefix):at], began, err == nil
}

// hostName returns the name of the host, which is that of the Pod, for the name of a file.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "unknown"
	}
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' {
			return '_'
		}
		return r
	}, name)
}
