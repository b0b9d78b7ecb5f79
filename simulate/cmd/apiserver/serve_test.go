// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestServe_AnswersUntilItEnds(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	r := start(t, "-crds", write(t, "crd.yaml", "# nothing\n---\n"+boxCRD))
	r.ask(t, "POST", boxes, `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"a"},"size":6}`, 422)
	r.ask(t, "POST", boxes, `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"a"},"size":5}`, 201)
	watch, err := r.client.Get(r.config.Host + boxes + "?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	if !strings.Contains(r.log.String(), r.config.Host) {
		t.Errorf("it says %q, want the address %s in it", r.log, r.config.Host)
	}
	if err := r.stop(); err != nil {
		t.Errorf("with an open watch it ended with %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("%v, %v is left in the temporary directory", left, err)
	}
}

func TestServe_KubeconfigWhereItIsWanted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine")
	for range 2 { // the second replaces what a killed one would leave
		r := start(t, "-kubeconfig", file)
		if r.kubeconfig != file {
			t.Errorf("the kubeconfig is %s, want %s", r.kubeconfig, file)
		}
		r.ask(t, "GET", configMaps, "", 200)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%v, %v is left beside the kubeconfig", left, err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestServe_DataOutlivesARestart_S23(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	r := start(t, "-data", data, "-crds", write(t, "crd.yaml", boxCRD))
	r.ask(t, "POST", configMaps, configMap("kept"), 201)
	r.ask(t, "POST", boxes, `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"kept"}}`, 201)
	before := r.ask(t, "GET", configMaps+"/kept", "", 200)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = start(t, "-data", data)
	if after := r.ask(t, "GET", configMaps+"/kept", "", 200); after != before {
		t.Errorf("after a restart it is\n%s\nwant\n%s", after, before)
	}
	r.ask(t, "GET", boxes+"/kept", "", 200)
}

func TestServe_ActorsUnlessTheyAreOff(t *testing.T) {
	for _, args := range [][]string{nil, {"-actors=false"}} {
		r := start(t, args...)
		watch, err := r.client.Get(r.config.Host + "/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Dshort")
		if err != nil {
			t.Fatal(err)
		}
		events := bufio.NewScanner(watch.Body)
		r.ask(t, "POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"short"}}`, 201)
		r.ask(t, "DELETE", "/api/v1/namespaces/short", "", 200)
		// Without actors the namespace is still there, after a later write, which the actors
		// would have to overtake.
		for args == nil && events.Scan() && !strings.Contains(events.Text(), `"type":"DELETED"`) {
		}
		if err := events.Err(); err != nil {
			t.Errorf("the watch of the namespace ended with %v, want its deletion", err)
		}
		_ = watch.Body.Close()
		want := 404
		if args != nil {
			want = 200
		}
		r.ask(t, "GET", "/api/v1/namespaces/short", "", want)
	}
}

func TestServe_Audit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit")
	r := start(t, "-audit", file, "-rbac")
	r.ask(t, "GET", configMaps+"?limit=1", "", 200)
	asked, err := http.NewRequestWithContext(t.Context(), "GET", r.config.Host+configMaps+"/none", nil)
	if err != nil {
		t.Fatal(err)
	}
	asked.Header.Set("Impersonate-User", "jane")
	answer, err := r.client.Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 403 {
		t.Errorf("without a role it is %d, want 403", answer.StatusCode)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []auditLine
	for line := range strings.Lines(string(text)) {
		var l auditLine
		decode(t, line, &l)
		if l.Time.IsZero() {
			t.Errorf("%s has no time", line)
		}
		l.Time = auditLine{}.Time
		got = append(got, l)
	}
	want := []auditLine{
		{User: "simulated-admin", Verb: "list", URI: configMaps + "?limit=1", Code: 200},
		{User: "jane", Verb: "get", URI: configMaps + "/none", Code: 403},
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log is %+v, want %+v", got, want)
	}
}

func TestServe_BindWarns_S24(t *testing.T) {
	r := start(t, "-bind", "0.0.0.0")
	if !strings.Contains(r.log.String(), "warning: other machines can reach") {
		t.Errorf("it says %q, want a warning", r.log)
	}
	r.ask(t, "GET", configMaps, "", 200) // the certificate is for the address of the kubeconfig
	if host, _, _ := net.SplitHostPort(strings.TrimPrefix(r.config.Host, "https://")); host != "127.0.0.1" {
		t.Errorf("the kubeconfig has the address %s, want one that can be reached", host)
	}
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: mustTLS(t, r)}}
	defer stranger.CloseIdleConnections()
	answer, err := stranger.Get(r.config.Host + configMaps)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 401 {
		t.Errorf("without a certificate it is %d, want 401", answer.StatusCode)
	}
}

func TestServe_ErrorsSayWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	file := filepath.Join(write(t, "file", "text"), "file")
	bad := write(t, "bad.yaml", "kind: Other\napiVersion: v1\n---\n"+boxCRD+"---\nkind: [\n")
	old := write(t, "old.yaml", strings.Replace(boxCRD, "io/v1", "io/v1beta1", 1))
	refused := write(t, "refused.yaml", "---\nkind: Other\napiVersion: v1\n---\n"+strings.Replace(boxCRD, "Namespaced", "Nowhere", 1))
	kept := start(t, "-data", filepath.Join(t.TempDir(), "data"))
	for _, c := range []struct {
		args string
		want []string
	}{
		{"-port " + port, []string{"address already in use", "name another port"}},
		{"-port 70000", []string{"between 1 and 65535"}},
		{"-bind nowhere.invalid", []string{"nowhere.invalid"}},
		{"-crds " + filepath.Join(bad, "none"), []string{"none", "name a directory with CRDs"}},
		{"-crds " + t.TempDir(), []string{"has none", "name a directory with CRDs"}},
		{"-crds " + bad, []string{"bad.yaml, document 3: "}},
		{"-crds " + old, []string{"old.yaml, document 1: ", "write it as apiextensions.k8s.io/v1"}},
		{"-crds " + refused, []string{"refused.yaml, document 2: ", `install the CRD "boxes.example.com"`}},
		{"-data " + file, []string{file, "name a directory that you can write to"}},
		{"-data " + filepath.Dir(kept.kubeconfig), []string{"another process has it"}},
		{"-audit " + filepath.Dir(file), []string{"name a file that you can write to"}},
		{"-kubeconfig " + file, []string{"not overwritten; name another file"}},
		{"-kubeconfig " + filepath.Join(bad, "no", "dir"), []string{"name a file in a directory that you can write to"}},
		{"-errors 2", []string{"write a share between 0"}},
		{"-errors NaN", []string{"write a share between 0"}},
		{"-errors 0.6 -throttle 0.6", []string{"at most 1"}},
		{"-watch-cuts -1s", []string{"write a positive duration"}},
		{"-seed 1", []string{"-seed without a fault"}},
		{"serve", []string{`"serve" is one argument too many`}},
		{"install", []string{"name one directory"}},
		{"install " + file, []string{file, "name a directory that you can write to"}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		err := run(ctx, "apiserver", strings.Fields(c.args), ending(cancel), &buffer{})
		cancel()
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("apiserver %s: %v, want an error that says %q", c.args, err, want)
			}
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "text" {
		t.Errorf("the file of another is %q, %v now", text, err)
	}
}

// ending ends a command that has started after all.
type ending func()

func (e ending) Write(p []byte) (int, error) {
	e()
	return len(p), nil
}

func TestServe_HelpNamesEachFlag(t *testing.T) {
	log := &buffer{}
	if err := run(t.Context(), "apiserver", []string{"-help"}, log, log); err == nil || !strings.Contains(err.Error(), "help") {
		t.Errorf("-help: %v, want what main takes for success", err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(log.String()) {
		if name, ok := strings.CutPrefix(line, "  -"); ok {
			name = "`-" + strings.Fields(name)[0]
			if !strings.Contains(string(readme), name+"`") && !strings.Contains(string(readme), name+" ") && !strings.Contains(string(readme), name+"=") {
				t.Errorf("README.md does not describe %s`", name)
			}
		}
	}
	if !strings.Contains(log.String(), "install DIR") {
		t.Errorf("-help does not name install:\n%s", log)
	}
}
