// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/flyball-dev/flyball/internal/commandline"
)

var update = flag.Bool("update", false, "write testdata")

// now is when the answers in testdata were given.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// What is read of an answer is what version 1 of the schema has.
func TestAnswers_AreThoseOfTheSchema(t *testing.T) {
	schema := strings.Split(read(t, "../../manager/internal/inspect/testdata/v1.txt"), "\n")
	for name, answer := range map[string]any{"Overview": overview{}, "KeyPage": keyPage{}, "KeyPage.keys[]": keyRow{}, "Key": history{}} {
		for _, field := range fieldsOf(name, reflect.TypeOf(answer)) {
			if !slices.Contains(schema, field) && field != "KeyPage.keys[] raw" {
				t.Errorf("the schema has no %q", field)
			}
		}
	}
}

// fieldsOf returns the fields of a type as the schema writes them.
func fieldsOf(at string, of reflect.Type) (out []string) {
	switch {
	case of == reflect.TypeFor[time.Time]():
		return []string{at + " time"}
	case of == reflect.TypeFor[json.RawMessage]():
		return []string{at + " raw"}
	case of.Kind() == reflect.Pointer:
		return fieldsOf(at, of.Elem())
	case of.Kind() == reflect.Slice:
		return fieldsOf(at+"[]", of.Elem())
	case of.Kind() == reflect.Map:
		return fieldsOf(at+"{}", of.Elem())
	case of.Kind() != reflect.Struct:
		return []string{at + " " + of.Kind().String()}
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			out = append(out, fieldsOf(at, f.Type)...)
		} else {
			out = append(out, fieldsOf(at+"."+name, f.Type)...)
		}
	}
	return out
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// golden compares a text with a file of testdata. It has nothing that a terminal interprets.
func golden(t *testing.T, name, got string) {
	t.Helper()
	for _, r := range got {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%s has the character %U, which a terminal may interpret", name, r)
		}
	}
	name = "testdata/" + name
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, name); got != want {
		t.Errorf("%s has\n%s\nbut now it is\n%s\nIf that is better, run the test with -update.", name, want, got)
	}
}

// Problems come first, the tables are those of kubectl, and a story has the newest run last.
func TestText_IsGolden(t *testing.T) {
	var all overview
	var key history
	for name, into := range map[string]any{"overview.json": &all, "key.json": &key} {
		if err := json.Unmarshal([]byte(read(t, "testdata/"+name)), into); err != nil {
			t.Fatal(err)
		}
	}
	c := clock{now: now, zone: time.UTC}
	golden(t, "status.txt", status(all, c, false))
	golden(t, "status-wide.txt", status(all, c, true))
	golden(t, "informers.txt", informers(all, true, c))
	golden(t, "why.txt", story(key, c, false, nil))
	golden(t, "why-wide.txt", story(key, c, true, nil))
	row, err := json.Marshal(map[string]any{"key": "a/one\n\x1b[1m", "state": "delayed", "due": now.Add(4 * time.Second), "attempts": 2, "outcome": "error", "ended": now.Add(-2 * time.Second), "error": "bad\x1b", "failingSince": now.Add(-time.Minute), "runs": 12})
	if err != nil {
		t.Fatal(err)
	}
	pages := []keyPage{{Controller: "order", Keys: []json.RawMessage{row, json.RawMessage(`{"key":"b/two","state":"idle","runs":1,"outcome":"done"}`)}}}
	golden(t, "keys.txt", keyTable(pages, true, c, false, nil))
	golden(t, "keys-wide.txt", keyTable(pages, false, c, true, nil))
}

func TestSeconds_AreShort(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0s", 0.0000004: "400ns", 0.0000123: "12µs", 0.00345: "3.5ms", 0.0999: "100ms", 1.26: "1.3s", 12.6: "13s", 99: "1m39s", 300: "5m", 7300: "121m", 100000: "27h",
	} {
		if got := seconds(s); got != want {
			t.Errorf("seconds(%v) is %s, want %s", s, got, want)
		}
	}
}

// fake is an operator with many keys.
type fake struct {
	keys  int
	asked func() (fails bool) // nil: it does not fail
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	say := func(code int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text)) // the test sees what it lacks
	}
	overview, _ := os.ReadFile("testdata/overview.json")
	key, _ := os.ReadFile("testdata/key.json")
	switch {
	case f.asked != nil && f.asked():
		say(500, `{"error":"broken\u001b"}`)
	case r.URL.Path == path+"overview":
		say(200, string(overview))
	case r.URL.Path == path+"controllers/order/keys":
		f.page(r, say)
	case r.URL.Path == path+"controllers/order/key" && r.FormValue("key") == "a/one":
		say(200, string(key))
	default:
		say(404, `{"error":"there is none"}`)
	}
}

// page answers with keys a/00000, b/00001, c/00002, a/00003 and so on.
func (f *fake) page(r *http.Request, say func(int, string)) {
	offset, _ := strconv.Atoi(r.FormValue("offset"))
	limit, _ := strconv.Atoi(r.FormValue("limit"))
	page := map[string]any{"version": "v1", "controller": "order", "known": f.keys, "matched": f.keys}
	rows := []map[string]any{}
	filter := regexp.MustCompile(r.FormValue("filter"))
	for n := offset; n < min(offset+limit, f.keys); n++ {
		if key := fmt.Sprintf("%c/%05d", 'a'+n%3, n); filter.MatchString(key) {
			rows = append(rows, map[string]any{"key": key, "state": "idle", "fresh": true})
		}
	}
	page["keys"] = rows
	if offset+limit < f.keys {
		page["next"] = offset + limit
	}
	text, err := json.Marshal(page)
	if err != nil {
		say(500, err.Error())
		return
	}
	say(200, string(text))
}

// command runs kubectl flyball on a program and returns what it prints.
func command(t *testing.T, handler http.Handler, args ...string) (out, problems string, err error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	return commandAt(t.Context(), append(args, "--address", server.Listener.Addr().String())...)
}

func commandAt(ctx context.Context, args ...string) (string, string, error) {
	var out, problems bytes.Buffer
	s := &session{out: &out, problems: &problems, zone: time.UTC, interval: time.Millisecond}
	err := s.run(ctx, args)
	return out.String(), problems.String(), err
}

// Keys are read page by page, those of one namespace alone, with all fields of a newer operator.
func TestKeys_AreReadByPages(t *testing.T) {
	for _, c := range []struct {
		args string
		want int
	}{
		{"--limit 0", 1200},
		{"", 100},
		{"--limit 700", 700},
		{"--limit 0 -n b", 400},
		{"--limit 150 -n c", 150},
		{"-n nothing", 0},
	} {
		out, _, err := command(t, &fake{keys: 1200}, append([]string{"keys", "order", "-o", "json"}, strings.Fields(c.args)...)...)
		var pages []struct{ Keys []map[string]any }
		if err := errors.Join(err, json.Unmarshal([]byte(out), &pages)); err != nil {
			t.Fatalf("keys %s: %v", c.args, err)
		}
		if got := len(pages[0].Keys); got != c.want {
			t.Errorf("keys %s has %d keys, want %d", c.args, got, c.want)
		}
		for _, k := range pages[0].Keys {
			if k["fresh"] != true {
				t.Fatalf("keys %s -o json has lost a field that this program does not know: %v", c.args, k)
			}
		}
	}
	out, _, err := command(t, &fake{keys: 1200}, "keys", "--limit", "2")
	if want := "2 keys of controller order of 1200 that match; --limit shows more.\n"; err != nil || !strings.HasSuffix(out, want) {
		t.Errorf("keys --limit 2: %v\n%s, want the end %q", err, out, want)
	}
}

// An object is found by kind and name, also in a plural or with its group, and by its key.
func TestWhy_FindsTheObject(t *testing.T) {
	for _, args := range []string{
		"order one -n a", "orders one -n a", "Order.shop.example.com one -n a", "orders.shop.example.com a/one",
		"order/one -n a", "a/one", "order/a/one", "one -n a",
	} {
		out, _, err := command(t, &fake{}, append([]string{"why"}, strings.Fields(args)...)...)
		if err != nil || !strings.HasPrefix(out, "a/one of controller order, delayed") {
			t.Errorf("why %s: %v\n%s\nwant the story of a/one", args, err, out)
		}
	}
	for args, want := range map[string]string{
		"policy one":       `no controller has the key "default/one" in its queue or among its recorded runs; kubectl flyball keys lists all`,
		"pod one":          `no controller has a source of the kind "pod"; there are Order.shop.example.com, Secret, Policy.shop.example.com`,
		"shop/gone":        `no controller has the key "shop/gone" in its queue or among its recorded runs; kubectl flyball keys lists all`,
		"order/gone":       `no controller has the key "default/gone" in its queue or among its recorded runs; kubectl flyball keys lists all`,
		"order gone":       `no controller has the key "default/gone" in its queue or among its recorded runs; kubectl flyball keys lists all`,
		"order 00000 -n x": `no controller has the key "x/00000"; do you mean a/00000?`,
	} {
		_, _, err := command(t, &fake{keys: 1}, append([]string{"why"}, strings.Fields(args)...)...)
		if err == nil || err.Error() != want {
			t.Errorf("why %s: %v, want %s", args, err, want)
		}
	}
}

// JSON and YAML are the operator's answer, without a character that a terminal interprets.
func TestOutput_IsTheAnswer(t *testing.T) {
	for _, c := range []struct {
		args, has string
	}{
		{"why a/one -o json", `"error": "bad\u001b]0;title\u0007\u202eeman"`},
		{"why a/one -o yaml", `\u202eeman`},
		{"status -o json", `"members": []`},
		{"informers -o json", `"kind": "Secret"`},
		{"status -o yaml", "phase: running"},
	} {
		out, _, err := command(t, &fake{}, strings.Fields(c.args)...)
		if err != nil || !strings.Contains(out, c.has) {
			t.Errorf("%s: %v\n%s\nwant %s", c.args, err, out, c.has)
		}
		if strings.ContainsFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%s prints a character that a terminal may interpret:\n%q", c.args, out)
		}
	}
	out, _, err := command(t, &fake{}, "why", "a/one", "-o", "json")
	if err != nil || !json.Valid([]byte(out)) {
		t.Errorf("why -o json: %v, want JSON:\n%s", err, out)
	}
}

// What has not changed is printed once, however often it is asked for. An operator that fails
// meanwhile is reported once.
func TestWatch_PrintsOnlyWhatChanges(t *testing.T) {
	for _, args := range []string{"watch", "status -w", "informers -w", "why a/one --watch", "keys order -w --limit 3"} {
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		f := &fake{keys: 3, asked: func() bool {
			if asked++; asked == 30 {
				cancel()
			}
			return asked > 10 && asked < 20
		}}
		server := httptest.NewServer(f)
		out, problems, err := commandAt(ctx, append(strings.Fields(args), "--address", server.Listener.Addr().String())...)
		server.Close()
		cancel()
		once, _, wrong := command(t, &fake{keys: 3}, strings.Fields(strings.NewReplacer("--watch", "", "watch", "status", "-w", "").Replace(args))...)
		if err != nil || wrong != nil || strings.Count(out, "\n") > strings.Count(once, "\n")+2 || len(out) < len(once) {
			t.Errorf("%s: %v, %v\n%s\nwant once\n%s", args, err, wrong, out, once)
		}
		if problems != "broken\\x1b\n" {
			t.Errorf("%s reports %q, want the failure once, without a control character", args, problems)
		}
	}
}

// An error says what to do.
func TestErrors_SayWhatToDo(t *testing.T) {
	status := func(code int, text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, text, code) })
	}
	for _, c := range []struct {
		name    string
		handler http.Handler
		args    []string
		want    string
		code    int
	}{
		{"without a token", status(401, "{}"), []string{"status"}, "pass --token, or --as-service-account", 1},
		{"a wrong token", status(401, "{}"), []string{"status", "--token", "x"}, "the API server does not accept the token", 1},
		{"forbidden", status(403, `{"message":"forbidden: User \"eve\" cannot get path"}`), []string{"status"},
			`User "eve" cannot get path` + "\na cluster administrator allows it by\n  kubectl create clusterrole flyball-console --verb=get '--non-resource-url=/debug/flyball/*'", 1},
		{"an older operator", status(404, "404 page not found"), []string{"status"}, "its Flyball is older than this, or its metrics are served without a guard", 1},
		{"another program", status(200, "<html>"), []string{"status"}, "is it an operator of Flyball?", 1},
		{"an unknown command", nil, []string{"sttus"}, `there is no command "sttus"`, 2},
		{"an unknown flag", nil, []string{"status", "--adress", "x"}, "do you mean -address?", 2},
		{"an argument too many", nil, []string{"status", "x"}, "give flags alone", 2},
		{"nothing to explain", nil, []string{"why"}, "Give KIND NAME or NAMESPACE/NAME", 2},
		{"an unknown output", nil, []string{"keys", "-o", "xml"}, "write json, yaml or wide", 2},
		{"two tokens", nil, []string{"keys", "--token", "a", "--as-service-account", "x"}, "leave one out", 2},
		{"one namespace and all", nil, []string{"keys", "-n", "a", "-A"}, "leave one out", 2},
		{"two operators", nil, []string{"keys", "-l", "a=b", "--operator", "x"}, "leave out all but one", 2},
	} {
		handler := c.handler
		if handler == nil {
			handler = &fake{}
		}
		_, _, err := command(t, handler, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || commandline.ExitCode(err) != c.code {
			t.Errorf("%s: %v (exit code %d), want %q and the exit code %d", c.name, err, commandline.ExitCode(err), c.want, c.code)
		}
	}
	if _, _, err := commandAt(t.Context(), "status", "--address", "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "nothing listens there") {
		t.Errorf("a port without a server: %v, want that nothing listens there", err)
	}
	if out, _, err := commandAt(t.Context()); err != nil || out != usage {
		t.Errorf("without arguments: %v\n%s, want the usage", err, out)
	}
}

// A token is not sent where others could read it, nor before it is asked for.
func TestToken_IsSentOnlyWhenAskedFor(t *testing.T) {
	asked := 0
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if asked == 1 && r.Header.Get("Authorization") != "" {
			t.Error("the first request has a token")
		}
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "{}", http.StatusUnauthorized)
			return
		}
		(&fake{}).ServeHTTP(w, r)
	})
	if _, _, err := command(t, handler, "status", "--token", "secret"); err != nil || asked != 2 {
		t.Errorf("with a token: %v after %d requests, want an answer after two", err, asked)
	}
	server := httptest.NewUnstartedServer(&fake{})
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the first request, without TLS
	server.StartTLS()
	defer server.Close()
	if _, _, err := commandAt(t.Context(), "status", "--address", server.Listener.Addr().String()); err != nil {
		t.Errorf("over TLS: %v", err)
	}
	far := newOperator("far", "operator.example.com:8080", nil, func(context.Context) (string, error) {
		t.Error("the token is read")
		return "secret", nil
	})
	if err := far.authenticate(t.Context()); err == nil || !strings.Contains(err.Error(), "does not serve TLS") {
		t.Errorf("to another machine without TLS: %v, want an error", err)
	}
}
