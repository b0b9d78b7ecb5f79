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

	"github.com/flyball-dev/flyball/internal/linger"
)

const (
	// answerWithin is how long an answer to its end may take; a stream that is no
	// watch to the runner has none.
	answerWithin = 90 * time.Second
	// frameWithin is how long a frame of a watch is waited for.
	frameWithin = 15 * time.Second
	// pollWithin is how long a poll waits for its status, pollEvery between two
	// looks.
	pollWithin = 30 * time.Second
	pollEvery  = 30 * time.Millisecond
	// agent is who writes, as managedFields name it.
	agent = "fidelity"
)

// Target is a server that cases are played to.
type Target struct {
	// Host is the beginning of all addresses: "https://127.0.0.1:6443".
	Host string
	// Client may do all. Stranger has no credentials; it sends the steps that
	// bring their own, and those of nobody.
	Client, Stranger *http.Client
	// Hooks is where Webhooks listens, for the server to ask: "https://127.0.0.1:1".
	// Empty: nowhere, and cases with webhooks fail.
	Hooks string
	// Trust is the certificate of Hooks, in PEM.
	Trust []byte
}

// Entry is what one step was answered.
type Entry struct {
	// Do is the step.
	Do string `json:"do,omitempty"`
	// Status and Headers of the answer; of headers those that the runner looks
	// at, Content-Type only where it is not plain JSON.
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is the answer as plain values.
	Body any `json:"body,omitempty"`
	// Frames are what came on a watch.
	Frames []any `json:"frames,omitempty"`
}

// player plays one case.
type player struct {
	target  Target
	vars    variables
	streams map[string]*stream
	entries []Entry
	seen    []any // all bodies and frames, whole
	last    any   // body of the last answer or frame
	read    func(*stream, *http.Response)
}

// Namespace is where a case is played: always the same one, as a body may be
// broken in the middle of its name.
func Namespace(name string) string {
	hash := fnv.New64a()
	hash.Write([]byte(name))
	return fmt.Sprintf("case-%012x", hash.Sum64()>>16)
}

// Run plays a case to target in a namespace, which must not be there yet, and
// returns what came back, normalised. It blocks until the last step is
// answered. An error is of the case or of the connection; no answer of the
// server is one.
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

// save keeps a part of the last answer, or what stands after the path where
// there is no such part.
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

// request sends one request and notes its answer.
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
	return p.note(step, Step{Verb: step.Verb, Rest: path, Options: step.Options}.String(), answer)
}

// ask sends one request, again while its kind is away: for a moment after its
// definition has changed, a server says so by 503, and to who reads also by 429.
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
		if !linger.For(ctx, pollEvery) {
			return nil, ctx.Err()
		}
	}
}

// note records an answer to its end.
func (p *player) note(step Step, do string, answer *http.Response) error {
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

// keep is what of an answer is noted: all, or the paths that are named.
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
			client = p.target.Stranger
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

// watch opens a stream. An answer that is not 200 is noted as any other.
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
		return p.note(step, step.String(), answer)
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
		return nil // it was refused, as is noted
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

// poll asks until the answer has the status, and notes nothing. A path alone is
// read; else it follows a method, and is followed by a body.
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
		if !linger.For(ctx, pollEvery) {
			return ctx.Err()
		}
	}
}

// headersOf is what of an answer's headers is looked at.
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
