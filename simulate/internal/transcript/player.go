// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/internal/sleep"
)

const (
	// answerWithin bounds the time of a complete answer; a stream that the runner does not
	// treat as a watch has no bound.
	answerWithin = 90 * time.Second
	// frameWithin bounds the wait for a frame of a watch.
	frameWithin = 15 * time.Second
	// pollWithin bounds the time of a poll, pollEvery is its interval.
	pollWithin = 30 * time.Second
	pollEvery  = 30 * time.Millisecond
	// agent is the writer that managedFields name.
	agent = "fidelity"
)

// Target is a server that plays cases.
type Target struct {
	// Host is the prefix of all addresses: "https://127.0.0.1:6443".
	Host string
	// Client may do everything. Anonymous has no credentials; it sends the steps that have
	// their own, and those with none.
	Client, Anonymous *http.Client
	// Hooks is the address of Webhooks that the server calls: "https://127.0.0.1:1". If
	// empty, cases with webhooks fail.
	Hooks string
	// Trust is the certificate of Hooks, in PEM.
	Trust []byte
}

// Entry is the answer to one step.
type Entry struct {
	// Do is the step.
	Do string `json:"do,omitempty"`
	// Status and Headers of the answer, with only the headers that the runner compares;
	// Content-Type only if it is not plain JSON.
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is the answer as plain values.
	Body any `json:"body,omitempty"`
	// Frames are the events of a watch.
	Frames []any `json:"frames,omitempty"`
}

// player plays one case.
type player struct {
	target  Target
	vars    variables
	streams map[string]*stream
	entries []Entry
	seen    []any // all bodies and frames, complete
	last    any   // body of the last answer or frame
	read    func(*stream, *http.Response)
}

// Namespace returns the namespace of a case. It is the same in each run, because a broken
// body may end in the middle of it.
func Namespace(name string) string {
	hash := fnv.New64a()
	hash.Write([]byte(name))
	return fmt.Sprintf("case-%012x", hash.Sum64()>>16)
}

// Run plays a case to target in a namespace, which must not exist yet, and returns the
// normalised answers. It blocks until the last step is answered. Its error is about the
// case or the connection; an answer of the server is never an error.
func Run(ctx context.Context, target Target, c Case, namespace string) ([]Entry, error) {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &player{target: target, vars: newVariables(namespace, target), streams: map[string]*stream{}}
	p.read = func(s *stream, answer *http.Response) {
		group.Go(func() { s.read(ctx, answer.Body, answer.Header.Get("Content-Type")) })
	}
	home := Step{Verb: "POST", Rest: "/api/v1/namespaces", Options: []Option{{"silent", "true"}},
		Body: `{"metadata":{"name":"` + namespace + `"}}`}
	for _, step := range append([]Step{home}, c.Steps...) {
		if err := p.play(ctx, step); err != nil {
			return nil, fmt.Errorf("%s: line %d: %s: %w", c.Name, step.Line, step, err)
		}
	}
	return p.normalised(c), nil
}

func (p *player) play(ctx context.Context, step Step) error {
	if step.isRequest() {
		return p.request(ctx, step)
	}
	first, rest, _ := strings.Cut(step.Rest, " ")
	switch step.Verb {
	case "watch":
		return p.watch(ctx, step, first, rest)
	case "await":
		return p.await(ctx, step, first, rest)
	case "poll":
		return p.poll(ctx, step, first, rest)
	case "save":
		return p.save(first, rest)
	case "set":
		value, err := p.vars.expand(rest)
		p.vars[first] = value
		return err
	}
	return errors.New("not a word of the runner")
}

// save stores a part of the last answer, or the value after the path if there is no such
// part.
func (p *player) save(name, rest string) error {
	path, instead, given := strings.Cut(rest, " ")
	value := field(p.last, path)
	switch {
	case value != nil:
		p.vars[name] = fmt.Sprint(value)
	case given:
		p.vars[name] = instead
	default:
		return fmt.Errorf("there is no %s in the last answer: %v", path, p.last)
	}
	return nil
}

// request sends one request and records its answer.
func (p *player) request(ctx context.Context, step Step) error {
	path, inline, _ := strings.Cut(step.Rest, " ")
	if inline != "" {
		step.Body = inline
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	answer, err := p.ask(ctx, step, step.Verb, path)
	if err != nil {
		return err
	}
	return p.record(step, Step{Verb: step.Verb, Rest: path, Options: step.Options}.String(), answer)
}

// ask sends one request, and retries while its kind is unavailable: for a moment after a
// change of its definition, a server answers 503, and for reads also 429.
func (p *player) ask(ctx context.Context, step Step, method, path string) (*http.Response, error) {
	for {
		answer, err := p.send(ctx, step, method, path)
		if err != nil {
			return nil, err
		}
		away := answer.StatusCode == http.StatusServiceUnavailable || method == http.MethodGet && answer.StatusCode == http.StatusTooManyRequests
		if !away {
			return answer, nil
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if !sleep.For(ctx, pollEvery) {
			return nil, ctx.Err()
		}
	}
}

// record records a complete answer.
func (p *player) record(step Step, do string, answer *http.Response) error {
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	entry := Entry{Do: do, Status: answer.StatusCode, Headers: headersOf(answer.Header)}
	if entry.Body, err = decodeBody(raw, answer.Header.Get("Content-Type")); err != nil {
		return fmt.Errorf("%w in %.300q", err, raw)
	}
	p.last = entry.Body
	p.seen = append(p.seen, entry.Body)
	switch {
	case step.option("break") != "":
		p.entries = append(p.entries, Entry{Do: do, Status: entry.Status, Body: keep(entry.Body, ".reason .message")})
	case step.option("changes") != "":
		sent, err := p.vars.expand(step.Body)
		if err != nil {
			return err
		}
		p.entries = append(p.entries, Entry{Do: do, Status: entry.Status, Body: changesOf([]byte(sent), entry.Body)})
	case step.option("quiet") != "":
	case step.option("silent") == "":
		entry.Body = keep(entry.Body, step.option("only"))
		p.entries = append(p.entries, entry)
	case answer.StatusCode >= 300:
		return fmt.Errorf("answered %d: %.300s", answer.StatusCode, raw)
	}
	return nil
}

// keep returns what is recorded of an answer: all, or the named paths.
func keep(body any, paths string) any {
	if paths == "" {
		return body
	}
	kept := map[string]any{}
	for _, path := range strings.Fields(paths) {
		kept[path] = field(body, path)
	}
	return kept
}

func (p *player) send(ctx context.Context, step Step, method, path string) (*http.Response, error) {
	path, err := p.vars.expand(path)
	if err != nil {
		return nil, err
	}
	text, err := p.vars.expand(step.Body)
	if err != nil {
		return nil, err
	}
	contentType := step.option("Content-Type")
	body, err := encodeBody(text, contentType)
	if err != nil {
		return nil, err
	}
	body = breakBody(body, step.option("break"))
	req, err := http.NewRequestWithContext(ctx, method, p.target.Host+path, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	client := p.target.Client
	req.Header.Set("User-Agent", agent)
	if contentType == "" && len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, o := range step.Options {
		switch {
		case o.Name == "as" && o.Value == "nobody", o.Name == "Authorization":
			client = p.target.Anonymous
		}
		if o.Name != strings.ToLower(o.Name) {
			value, err := p.vars.expand(o.Value)
			if err != nil {
				return nil, err
			}
			req.Header.Add(o.Name, value)
		}
	}
	return client.Do(req)
}

// watch opens a stream. An answer that is not 200 is recorded like any other.
func (p *player) watch(ctx context.Context, step Step, name, path string) error {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	answer, err := p.ask(ctx, step, http.MethodGet, path+separator+"watch=1")
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return p.record(step, step.String(), answer)
	}
	p.entries = append(p.entries, Entry{Do: step.String(), Status: answer.StatusCode, Headers: headersOf(answer.Header)})
	s := &stream{frames: make(chan any)}
	p.streams[name] = s
	p.read(s, answer)
	return nil
}

func (p *player) await(ctx context.Context, step Step, name, want string) error {
	s := p.streams[name]
	if s == nil {
		return nil // it was refused, which is recorded
	}
	if _, err := strconv.Atoi(want); err != nil && want != "bookmark" && want != "marker" && want != "end" {
		return fmt.Errorf("%q is neither a number of frames nor bookmark, marker or end", want)
	}
	frames := s.await(ctx, want, frameWithin)
	if len(frames) > 0 {
		p.last = frames[len(frames)-1]
	}
	p.seen = append(p.seen, frames...)
	p.entries = append(p.entries, Entry{Do: step.String(), Frames: frames})
	return nil
}

// poll repeats a request until the answer has the status, and records nothing. A path alone
// is a GET; otherwise a method precedes it and a body follows.
func (p *player) poll(ctx context.Context, step Step, status, rest string) error {
	method, path := http.MethodGet, rest
	if before, after, more := strings.Cut(rest, " "); more {
		method = before
		path, step.Body, _ = strings.Cut(after, " ")
	}
	deadline := time.Now().Add(pollWithin)
	for {
		answer, err := p.send(ctx, step, method, path)
		if err != nil {
			return err
		}
		raw, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		switch {
		case err != nil:
			return err
		case strconv.Itoa(answer.StatusCode) == status:
			p.last, err = decodeBody(raw, answer.Header.Get("Content-Type"))
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("still answered %d after %v", answer.StatusCode, pollWithin)
		}
		if !sleep.For(ctx, pollEvery) {
			return ctx.Err()
		}
	}
}

// headersOf returns the headers of an answer that are compared.
func headersOf(header http.Header) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"Content-Type", "Warning", "Retry-After", "Location", "Allow", "Www-Authenticate", "Etag"} {
		if values := header.Values(name); len(values) > 0 {
			out[name] = strings.Join(values, "; ")
		}
	}
	if out["Content-Type"] == "application/json" {
		delete(out, "Content-Type")
	}
	if out["Etag"] != "" {
		out["Etag"] = "<etag>"
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
