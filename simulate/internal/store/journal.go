// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/flyball-dev/flyball/internal/filelock"
)

// spareChanges is how many changes a journal may have in excess of its objects before it is
// rewritten.
const spareChanges = 10_000

// Journal keeps the changes of a store in a file, so that they survive the process.
//
// It begins with a snapshot: the revision, what the server has handed out, and the objects.
// One record for each change follows. Every record has a length and a checksum, so a reader
// tells a record that a crash cut off, which is dropped, from damage, which is an error. Append
// returns when its records are on the disk, or with Unsynced in the file.
//
// It has no lock: one goroutine at a time uses a Journal. Whoever opens the directory holds a
// lock file in it against other processes.
type Journal struct {
	// Unsynced: Append does not wait for the disk.
	Unsynced bool

	path   string
	unlock func() // releases the directory
	file   JournalFile
}

// JournalFile is an open file that records are appended to.
type JournalFile interface {
	io.WriteCloser
	Sync() error
}

// NewJournal returns a journal that appends to an open file. Errors name it by path.
func NewJournal(path string, file JournalFile) *Journal {
	return &Journal{path: path, unlock: func() {}, file: file}
}

// OpenJournal locks dir, which it creates if necessary, and reads the journal in it. content is nil if
// there is none yet; the caller then writes one with Rewrite. warning says what was lost of the
// journal.
func OpenJournal(dir string) (j *Journal, content *JournalContent, warning string, err error) {
	wrong := func(err error) (*Journal, *JournalContent, string, error) {
		if j.file != nil {
			_ = j.file.Close()
		}
		if j.unlock != nil {
			j.unlock()
		}
		return nil, nil, "", fmt.Errorf("keep objects in %s: %w", dir, err)
	}
	j = &Journal{path: filepath.Join(dir, "journal")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return wrong(fmt.Errorf("%w; name a directory that you can write to", err))
	}
	if j.unlock, err = filelock.Try(filepath.Join(dir, "lock")); err != nil {
		return wrong(fmt.Errorf("%w; name a directory that you can write to", err))
	}
	if j.unlock == nil {
		return wrong(errors.New("another process has it; stop that, or name another directory"))
	}
	content, err = j.read()
	if err != nil || content == nil {
		if err != nil {
			return wrong(err)
		}
		return j, nil, "", nil
	}
	if content.torn {
		warning = fmt.Sprintf("the last record of %s was not written whole and is dropped; its write was never acknowledged", j.path)
	}
	if err := j.resume(content); err != nil {
		return wrong(err)
	}
	return j, content, warning, nil
}

// Path returns the name of the file.
func (j *Journal) Path() string { return j.path }

// read returns the content of the file, or nil if there is none.
func (j *Journal) read() (*JournalContent, error) {
	file, err := os.Open(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := ReadJournal(file)
	if at := (*damage)(nil); errors.As(err, &at) {
		return nil, fmt.Errorf("%s is damaged: %w; put back a copy of the file, or move it away to begin with nothing", j.path, err)
	}
	return &content, err
}

// resume opens the file for appending and truncates a torn record. It rewrites a file that
// holds mostly history.
func (j *Journal) resume(content *JournalContent) error {
	if now := JournalSnapshotOf(content.Log, content.Given); content.changes > spareChanges+len(now.objects) {
		return j.Rewrite(now)
	}
	file, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	j.file = file
	if content.torn {
		err = errors.Join(file.Truncate(content.whole), file.Sync())
	}
	return err
}

// Rewrite replaces the file by one that holds only a snapshot, and opens it.
func (j *Journal) Rewrite(now JournalSnapshot) error {
	err := ReplaceFile(j.path, now.write)
	if err != nil {
		return err
	}
	j.file, err = os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	return err
}

// Append writes records and syncs the file unless Unsynced.
func (j *Journal) Append(records []JournalRecord) error {
	var lines []byte
	var err error
	for _, record := range records {
		if lines, err = appendRecord(lines, record); err != nil {
			return err
		}
	}
	if _, err := j.file.Write(lines); err != nil {
		return err
	}
	if j.Unsynced {
		return nil
	}
	return j.file.Sync()
}

// Close closes the file and unlocks the directory.
func (j *Journal) Close() error {
	defer j.unlock()
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
