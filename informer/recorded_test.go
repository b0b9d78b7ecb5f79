// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/compact"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/kube"
)

// recordedLines returns the entries of a recording, as text.
func recordedLines(t *testing.T, r *recording.Recorder, w *recording.Window) (lines []string) {
	t.Helper()
	r.Stop()
	var out bytes.Buffer
	if err := w.Write(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	b, err := recording.Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range b.Entries {
		var obj corev1.ConfigMap
		if e.Object != nil {
			if err := json.Unmarshal(e.Object, &obj); err != nil || obj.Kind != "ConfigMap" {
				t.Errorf("an object is %s, %v", e.Object, err)
			}
		}
		line := string(e.What)
		for _, part := range []string{e.Type, obj.Name, obj.Data["v"]} {
			if part != "" {
				line += " " + part
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// A recording has the objects that the store had when it began and then what comes from the server,
// also of an informer that packs its objects; own writes, and objects of a list that the store has,
// are not events of their own.
func TestInformer_IsRecorded(t *testing.T) {
	for name, opts := range map[string]informer.Options{"plain": {}, "packed": {Compact: compact.New(compact.Options{HotObjects: 1})}} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { isRecorded(t, opts) }) })
	}
}

func isRecorded(t *testing.T, opts informer.Options) {
	var r recording.Recorder
	s := newServer()
	s.put("a", "1")
	s.put("b", "1")
	i := informer.New[cmap](s, configMaps, opts)
	ctx, cancel := context.WithCancel(recording.With(t.Context(), &r))
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	synctest.Wait()
	w, err := r.Open(recording.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.put("c", "1")
	s.put("a", "2")
	s.remove("b")
	synctest.Wait()
	written := s.put("d", "1") // its event comes after the answer
	i.Observe(kube.Written{Kind: configMaps, Effect: kube.Stored, Key: kube.KeyOf(written), UID: written.UID, Version: kube.ParseVersion(written.ResourceVersion), Object: written})
	synctest.Wait()
	expect(t, "the recording", recordedLines(t, &r, w),
		"informer", "object a 1", "object b 1", "event ADDED c 1", "event MODIFIED a 2", "event DELETED b 1", "event ADDED d 1")
	s.put("a", "3") // of no recording
	synctest.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
