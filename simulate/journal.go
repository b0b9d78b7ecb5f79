// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/flyball-dev/flyball/internal/filelock"
)

// spareChanges is how many changes more than objects a journal may have before
// it is written anew.
const spareChanges = 10_000

// journal is the file that a server's changes are appended to. One goroutine at
// a time uses it.
type journal struct {
	path   string
	unlock func() // others may have the directory
	file   interface {
		io.WriteCloser
		Sync() error
	}
}

// openJournal takes the directory, which is made if need be, and reads the
// journal in it; content is nil when there is none yet. warning says what was
// lost of it.
func openJournal(dir string) (j *journal, content *journalContent, warning string, err error) {
	wrong := func(err error) (*journal, *journalContent, string, error) {
		if j.unlock != nil {
			j.unlock()
		}
		return nil, nil, "", fmt.Errorf("keep objects in %s: %w", dir, err)
	}
	j = &journal{path: filepath.Join(dir, "journal")}
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
		warning = fmt.Sprintf("the last record of %s was not written whole and is dropped; nobody was told that it was kept", j.path)
	}
	if err := j.resume(content); err != nil {
		return wrong(err)
	}
	return j, content, warning, nil
}

// read is what the file says, nil when there is none.
func (j *journal) read() (*journalContent, error) {
	file, err := os.Open(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := readJournal(file)
	if at := (*damage)(nil); errors.As(err, &at) {
		return nil, fmt.Errorf("%s is damaged: %w; put back a copy of the file, or move it away to begin with nothing", j.path, err)
	}
	return &content, err
}

// resume opens the file for appending, without what is torn of it. One that is
// mostly about what is no more is written anew.
func (j *journal) resume(content *journalContent) error {
	if now := snapshotOf(content.log, content.given); content.changes > spareChanges+len(now.objects) {
		return j.rewrite(now)
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

// rewrite makes the file anew, of what is stored, and opens it.
func (j *journal) rewrite(now snapshot) error {
	err := replaceFile(j.path, now.write)
	if err != nil {
		return err
	}
	j.file, err = os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	return err
}

// append writes records, and returns when they would outlive the machine.
func (j *journal) append(records []journalChange) error {
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
	return j.file.Sync()
}

// close gives the directory back.
func (j *journal) close() error {
	defer j.unlock()
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
