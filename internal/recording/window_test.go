// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/kube"
)

// large writes a state of n MiB.
func large(n int) func(*recording.Recorder, *recording.Window) {
	return func(_ *recording.Recorder, w *recording.Window) {
		var objects []kube.Object
		for range n {
			objects = append(objects, &corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("x", 1<<20)}})
		}
		w.Informer(recording.Source{Kind: configMapKind}, yields(objects...))
		w.Begin("c", "k", "")
	}
}

// The state of the informers counts, object by object.
func TestWindow_StateIsBounded_M29(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := written(t, recording.Options{Limit: 2 << 20}, large(10))
		if b.End == nil || !strings.Contains(b.End.Reason, "the objects of the informers alone exceed its limit of 2 MiB") || len(b.Entries) != 3 {
			t.Errorf("a Window of 2 MiB has %d entries and the end %+v, want 3 entries and why it ends", len(b.Entries), b.End)
		}
	})
}

// After a Window was written nothing waits in it for ever, however it ended.
func TestWindow_TakesNothingAfterItsEnd_M29(t *testing.T) {
	var r recording.Recorder
	w, err := r.Open(recording.Options{Decode: decode})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), failing{}); !errors.Is(err, errFull) {
		t.Errorf("Write = %v, want the writer's error", err)
	}
	held := make([]byte, 1<<20)
	for range 3 {
		w.Begin("c", "k", string(held))
	}
	var out bytes.Buffer
	if err := w.Write(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if b, err := recording.Read(&out); err != nil || len(b.Entries) != 0 || b.End.Reason != "its writer failed" {
		t.Errorf("after its end a Window has %+v, %v", b, err)
	}
}

var errFull = errors.New("the disk is full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

// An object that is not valid as JSON is left out.
func TestWrite_ObjectsThatAreNotJSON(t *testing.T) {
	b, _ := written(t, recording.Options{}, func(_ *recording.Recorder, w *recording.Window) {
		w.Informer(recording.Source{Kind: configMapKind}, yields(&unstructured.Unstructured{Object: map[string]any{"x": make(chan int)}}))
	})
	if len(b.Entries) != 1 {
		t.Errorf("the entries are %+v, want the informer alone", b.Entries)
	}
}

// Entries that no program writes are refused.
func TestRead_RefusesImpossibleEntries(t *testing.T) {
	for log, want := range map[string]string{
		`{"at":-1,"what":"begin"}`:                                             "must be between 0 and 25h",
		`{"at":90000000000001,"what":"begin"}`:                                 "must be between 0 and 25h",
		`{"at":5000000000,"what":"begin"}` + "\n" + `{"at":1,"what":"begin"}`:  "that of the entry before it 5s",
		`{"at":1,"what":"object","informer":1}`:                                "it has no object",
		`{"at":500000000,"what":"begin"}` + "\n" + `{"at":1,"what":"request"}`: "",
	} {
		var out bytes.Buffer
		files := tar.NewWriter(&out)
		for _, f := range [][2]string{{"bundle.json", `{"format":"` + recording.Format + `"}`}, {"log/000001.jsonl", log}} {
			if err := errors.Join(files.WriteHeader(&tar.Header{Name: f[0], Size: int64(len(f[1]))}), func() error { _, err := files.Write([]byte(f[1])); return err }()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := recording.Read(&out); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", log, err, want)
		}
	}
}

// ring runs a Ring for a while, and returns its log.
func ring(t *testing.T, r *recording.Recorder, of recording.Ring, while func()) (lines []string) {
	t.Helper()
	of.Decode = decode
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = of.Run(ctx, r, funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	}()
	while()
	cancel()
	<-ended
	return lines
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// A recording that is asked for ends that of the Ring, which goes on afterwards.
func TestRing_YieldsToARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recording.Recorder
		dir := t.TempDir()
		log := ring(t, &r, recording.Ring{Dir: dir, Every: time.Hour}, func() {
			time.Sleep(time.Minute)
			w := httptest.NewRecorder()
			r.Handler(recording.Options{Decode: decode}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?seconds=600", nil))
			if b, err := recording.Read(w.Body); w.Code != http.StatusOK || err != nil || b.End.Reason != "its time is over" {
				t.Errorf("the request is answered with %d, %+v, %v", w.Code, b, err)
			}
			time.Sleep(time.Second)
		})
		if files := names(t, dir); len(log) != 0 || len(files) != 2 {
			t.Errorf("the Ring leaves %q and logs %q, want a file before and one after the request", files, log)
		}
		ends := []string{"it made way for another recording", "the program stops"}
		for i, name := range names(t, dir) {
			file, err := os.Open(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if b, err := recording.Read(file); err != nil || b.End == nil || b.End.Reason != ends[i] {
				t.Errorf("%s is %+v, %v; want the end %q", name, b, err, ends[i])
			}
			_ = file.Close()
		}
	})
}

// A Ring whose limit is below the state of the informers does not spin.
func TestRing_LimitBelowTheState_M29(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recording.Recorder
		dir := t.TempDir()
		begun := 0
		defer r.Join(func(w *recording.Window) {
			if w != nil {
				begun++
				large(2)(&r, w)
			}
		})()
		log := ring(t, &r, recording.Ring{Dir: dir, Options: recording.Options{Limit: 1 << 20}}, func() { time.Sleep(3*time.Minute + time.Second) })
		if begun != 4 || len(log) != 1 {
			t.Errorf("in 3 minutes %d recordings begin and the log is %q, want one a minute and one line", begun, log)
		}
	})
}

// Files of other hosts stay for days, and a recording that fails costs no other.
func TestRing_OtherFilesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recording.Recorder
		dir := t.TempDir()
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		stay := []string{"flyball-" + host + "-b-19991231T235900.000000Z.tar.gz", "flyball-other-19991231T235900.000000Z.tar.gz.part", "flyball-notes.tar.gz", "x"}
		for _, name := range append(stay, "flyball-gone-19991220T000000.000000Z.tar.gz", "flyball-"+host+"-19991231T235900.000000Z.tar.gz.part") {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ring(t, &r, recording.Ring{Dir: dir, Every: time.Minute, Keep: 1}, func() { time.Sleep(3*time.Minute + time.Second) })
		all := strings.Join(names(t, dir), " ")
		for _, name := range stay {
			if !strings.Contains(all, name) {
				t.Errorf("%s was removed", name)
			}
		}
		if strings.Contains(all, "-gone-") || strings.Contains(all, host+"-1999") {
			t.Errorf("the directory has %s, want neither files of gone hosts nor old ones of this one", all)
		}
	})
}

// A client that is too slow loses the recording at the time that it asked for, and a little.
func TestHandler_HasOneDeadline_M29(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recording.Recorder
		w := &slow{ResponseRecorder: httptest.NewRecorder()}
		began := time.Now()
		r.Handler(recording.Options{Decode: decode}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?seconds=5", nil))
		if len(w.deadlines) != 1 || w.deadlines[0].Sub(began) != 35*time.Second || w.Header().Get("Connection") != "close" {
			t.Errorf("the deadlines are %v after %v", w.deadlines, began)
		}
	})
}

type slow struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

// SetWriteDeadline is what an http.ResponseController looks for.
func (s *slow) SetWriteDeadline(at time.Time) error {
	s.deadlines = append(s.deadlines, at)
	return nil
}

// What an informer learns while its events are converted is not a race.
func TestInformerLog_LearnsWhileItIsWritten(t *testing.T) {
	b, _ := written(t, recording.Options{}, func(r *recording.Recorder, w *recording.Window) {
		l := w.Informer(recording.Source{Kind: configMapKind}, yields())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.Event("ADDED", opened(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}), "5", 1)
			l.Learned(recording.Source{Kind: configMapKind, Resource: "configmaps"})
			r.Stop()
		}()
		if err := w.Write(t.Context(), &bytes.Buffer{}); err != nil {
			t.Error(err)
		}
		<-ended
	})
	if b.End == nil {
		t.Error("the Window has no end")
	}
}
