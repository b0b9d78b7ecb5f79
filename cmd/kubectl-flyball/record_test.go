// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// recordMarker records a running marker while ConfigMaps are made, and replays that.
func recordMarker(t *testing.T, cfg *rest.Config, args ...string) {
	t.Helper()
	admin, err := client.New(cfg, clientscheme.Scheme, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "marker.tar.zst")
	type result struct {
		out string
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, problems, err := commandAt(t.Context(), append([]string{"record", "3s", "-o", file}, args...)...)
		done <- result{out + problems, err}
	}()
	eventually(t, func() bool { _, err := os.Stat(file + ".part"); return err == nil }) // it records
	for i := range 3 {
		if err := admin.Create(t.Context(), configMap("shop", fmt.Sprint("during-", i))); err != nil {
			t.Fatal(err)
		}
	}
	is := <-done
	for _, want := range []string{"for 3s; ctrl-c ends it early.", "Wrote " + file, "whole. To replay it, in the directory of the test", "go test -run '^TestReplay$' -v -kit.bundle=" + file} {
		if is.err != nil || !strings.Contains(is.out, want) {
			t.Errorf("record says %s %v, want %q", is.out, is.err, want)
		}
	}
	if n := markedIn(t, file); n < 3 {
		t.Errorf("the recording has %d updates of the marker, want those of three ConfigMaps", n)
	}
	kit.Replay(t, file, kit.Config{}, addMarker)
}

// markedIn counts the marker's updates in a recording.
func markedIn(t *testing.T, file string) (updates int) {
	t.Helper()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := recording.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range b.Entries {
		if e.What == recording.Request && e.Method == "PUT" && strings.Contains(e.Path, "/configmaps/during-") {
			updates++
		}
	}
	return updates
}

func TestRecord_OfARunningOperatorReplays(t *testing.T) {
	server := simtest.New(t, nil, configMap("shop", "one"), configMap("shop", "bad"))
	at := startOperator(t, server.Config, nil, manager.Serving{}, nil)
	recordMarker(t, server.Config, "--address", at)
}

func TestRecord_Misuse(t *testing.T) {
	for args, want := range map[string]string{
		"record 1ms":               `how long is "1ms"; give whole seconds up to an hour`,
		"record 2h":                `how long is "2h"`,
		"record soon":              `how long is "soon"`,
		"record 1s -o bundle.json": "a file that ends in .tar.zst or .tar.gz",
		"record 1s 2s":             "give how long, such as 10m",
		"record 1s --address 127.0.0.1:1 -o x.tar.zst": "nothing listens there",
	} {
		t.Run(args, func(t *testing.T) {
			out, problems, err := commandAt(t.Context(), strings.Fields(args)...)
			if text := fmt.Sprint(out, problems, err); err == nil || !strings.Contains(text, want) {
				t.Errorf("it says %s, want %q", text, want)
			}
		})
	}
}

func TestRecord_LeavesAFileThatExists(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.tar.gz")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := commandAt(t.Context(), "record", "1s", "-o", file, "--address", "127.0.0.1:1")
	if text, _ := os.ReadFile(file); err == nil || !strings.Contains(err.Error(), "exists already; name another file with -o") || string(text) != "mine" {
		t.Errorf("it says %v, and the file has %q", err, text)
	}
}

// A stream that breaks off leaves a file with what came before.
func TestSave_KeepsWhatThereIs(t *testing.T) {
	var r recording.Recorder
	w, err := r.Open(recording.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.Begin("c", "k", "added")
	var whole bytes.Buffer
	r.Stop()
	if err := w.Write(context.Background(), &whole); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x.tar.gz", "x.tar.zst"} {
		path := filepath.Join(t.TempDir(), name)
		early, err := save(io.MultiReader(bytes.NewReader(whole.Bytes()[:whole.Len()-100]), broken{}), path)
		if err != nil || !early {
			t.Errorf("%s: save = %v, %v; want early", name, early, err)
		}
		is, err := os.Stat(path)
		if err != nil || is.Size() == 0 || is.Mode().Perm() != 0o600 {
			t.Errorf("%s is %+v, %v", name, is, err)
		}
		if early, err = save(bytes.NewReader(whole.Bytes()), path); err != nil || early {
			t.Errorf("%s: save = %v, %v; want the whole", name, early, err)
		}
	}
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	if _, err := save(strings.NewReader("not a recording"), path); err == nil {
		t.Error("what is not a recording is saved")
	}
	if _, err := os.Stat(path + ".part"); !os.IsNotExist(err) {
		t.Errorf("a recording that failed leaves its file: %v", err)
	}
}

// broken is a connection that was reset.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, context.DeadlineExceeded }
