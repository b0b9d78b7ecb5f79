// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/flyball-dev/flyball/internal/commandline"
	"github.com/flyball-dev/flyball/internal/textlog"
)

// record writes a recording of the operator to a file. If ctx ends before, it keeps what there is.
func (s *session) record(ctx context.Context, args []string) error {
	lasts, err := recordingTime(args)
	if err != nil {
		return err
	}
	file := s.file
	if file == "" {
		file = "flyball-" + time.Now().In(s.zone).Format("20060102-150405") + ".tar.zst"
	}
	if !strings.HasSuffix(file, ".zst") && !strings.HasSuffix(file, ".gz") {
		return commandline.Misusef("-o is %q; write the name of a file that ends in .tar.zst or .tar.gz", file)
	}
	if _, err := os.Lstat(file); err == nil {
		return commandline.Misusef("%s exists already; name another file with -o", file)
	}
	answers, err := s.overviews(ctx) // which finds out how to ask
	if err != nil {
		return err
	}
	o := answers[0].operator
	if len(answers) > 1 {
		fmt.Fprintf(s.problems, "A recording is of one replica; --operator NAMESPACE/POD names another than %s.\n", textlog.Visible(o.name))
	}
	query := url.Values{"seconds": {strconv.Itoa(int(lasts.Seconds()))}, "redact": s.redact}
	stream, err := o.stream(ctx, "recording", query)
	if isMissing(err) {
		return fmt.Errorf("%s does not make recordings: it is older than this command", o.name)
	}
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	fmt.Fprintf(s.problems, "Recording %s for %v; ctrl-c ends it early.\n", textlog.Visible(o.name), lasts)
	early, err := save(stream, file)
	if err != nil {
		return err
	}
	is, err := os.Stat(file)
	if err != nil {
		return err
	}
	how := "whole"
	if early {
		how = "cut off, and can be replayed up to there"
	}
	fmt.Fprintf(s.out, "Wrote %s, %d KiB: %s. "+
		"To replay it, in the directory of the test that calls kit.Replay:\n  go test -run '^TestReplay$' -v -kit.bundle=%s\n", textlog.Visible(file), is.Size()>>10, how, textlog.Visible(absolute(file)))
	return nil
}

func recordingTime(args []string) (time.Duration, error) {
	if len(args) == 0 {
		return time.Minute, nil
	}
	lasts, err := time.ParseDuration(args[0])
	if err != nil || lasts < time.Second || lasts > time.Hour || lasts%time.Second != 0 {
		return 0, commandline.Misusef("how long is %q; give whole seconds up to an hour, such as 90s or 10m", args[0])
	}
	return lasts, nil
}

// absolute returns path for a test, which runs in the directory of its package.
func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// save writes a recording to a file that only the user can read. early: the stream broke off, and
// the file has what came before.
func save(stream io.Reader, path string) (early bool, err error) {
	out, err := os.OpenFile(path+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return false, err
	}
	if strings.HasSuffix(path, ".zst") {
		early, err = repack(stream, out)
	} else {
		var broken readError
		_, err = io.Copy(out, &reader{stream, &broken})
		if early = broken.err != nil; early {
			err = nil
		}
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return early, errors.Join(err, os.Remove(path+".part"))
	}
	return early, os.Rename(path+".part", path)
}

// repack changes the compression to zstd.
func repack(stream io.Reader, out io.Writer) (early bool, err error) {
	zip, err := gzip.NewReader(stream)
	if err != nil {
		return false, fmt.Errorf("read the recording: %w", err)
	}
	small, err := zstd.NewWriter(out)
	if err != nil {
		return false, err
	}
	var broken readError
	_, err = io.Copy(struct{ io.Writer }{small}, &reader{zip, &broken}) // its ReadFrom would keep errors of reading
	if early = broken.err != nil; early {
		err = nil
	}
	return early, errors.Join(err, small.Close())
}

// reader tells errors of reading from those of writing.
type reader struct {
	io.Reader
	broken *readError
}

type readError struct{ err error }

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.broken.err = err
	}
	return n, err
}
