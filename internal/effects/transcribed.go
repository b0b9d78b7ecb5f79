// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/internal/redact"
)

// largestTranscribed is the largest body that a recording has.
const largestTranscribed = 8 << 20

const tooLarge = "it has more than 8 MiB"

// send sends a request of a reconcile, and writes it to the recording run, if there is one.
func (t recorded) send(req *http.Request, run *recording.Run) (*http.Response, error) {
	if run == nil || req.URL.Host != t.host || !Replayed(req, t.prefix) {
		return t.next.RoundTrip(req)
	}
	req = req.WithContext(req.Context()) // a RoundTripper must not modify that of its caller
	sent, err := ContentOf(req, t.prefix)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	number := run.Request(req.Method, PathOf(req, t.prefix), sent)
	resp, err := t.next.RoundTrip(req)
	about := recording.Content{Resource: sent.Resource, Subresource: sent.Subresource}
	if isConnected(sent.Subresource) {
		about.Missing = notRecorded
	}
	if err != nil {
		run.Answer(number, 0, "", about, err)
		return resp, err
	}
	about.Type = resp.Header.Get("Content-Type")
	again := resp.Header.Get("Retry-After")
	switch {
	case resp.Body == nil || resp.StatusCode == http.StatusSwitchingProtocols || about.Missing != "":
		run.Answer(number, resp.StatusCode, again, about, nil)
	case isStream(req):
		about.Missing = "it is a stream"
		run.Answer(number, resp.StatusCode, again, about, nil)
	case resp.Header.Get("Content-Encoding") != "":
		about.Missing = "it is compressed, as the program asked for"
		run.Answer(number, resp.StatusCode, again, about, nil)
	default:
		body := &transcribedBody{ReadCloser: resp.Body, run: run, number: number, code: resp.StatusCode}
		body.again, body.mu.about = again, about
		resp.Body = body
	}
	return resp, nil
}

// Replayed reports whether a request belongs into a recording: discovery does not, whose answers a
// client keeps for all reconciles.
func Replayed(req *http.Request, prefix string) bool {
	_, ok := Parse(req.URL.Path, prefix)
	return ok
}

// notRecorded is why a body is missing that is not for the API server.
const notRecorded = "it is for another server, or a process in a container"

// isStream reports whether the answer to req ends only with the connection.
func isStream(req *http.Request) bool {
	if req.URL.RawQuery == "" {
		return false
	}
	query := req.URL.Query()
	for _, name := range []string{"watch", "follow"} { // as the API server reads them
		if is, has := query[name]; has && is[0] != "0" && !strings.EqualFold(is[0], "false") {
			return true
		}
	}
	return false
}

// PathOf returns the path of a request below that of the server, with its query, in which values
// that look like a credential are hidden. What a request through the API server sends to another
// is left out.
func PathOf(req *http.Request, prefix string) string {
	path := strings.TrimPrefix(req.URL.Path, prefix)
	if to, ok := Parse(path, ""); ok && isConnected(to.Subresource) {
		return strings.TrimSuffix(strings.TrimSuffix(path, to.Rest), "/")
	}
	if req.URL.RawQuery == "" {
		return path
	}
	parts := strings.Split(req.URL.RawQuery, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		if text, err := url.QueryUnescape(value); err != nil || redact.Field(name, text) != text {
			parts[i] = name + "=" + url.QueryEscape(redact.Hidden)
		}
	}
	return path + "?" + strings.Join(parts, "&")
}

// ContentOf returns the body of a request to a server below prefix. req can be sent nevertheless:
// if its body can be read once only, ContentOf replaces it. The error is that of reading it.
func ContentOf(req *http.Request, prefix string) (c recording.Content, err error) {
	if to, ok := Parse(req.URL.Path, prefix); ok {
		c.Resource, c.Subresource = to.Resource.GroupResource(), to.Subresource
	}
	if c.Type = req.Header.Get("Content-Type"); req.Body == nil || req.Body == http.NoBody {
		return c, nil
	}
	switch {
	case isConnected(c.Subresource):
		c.Missing = notRecorded
		return c, nil
	case req.ContentLength > largestTranscribed:
		c.Missing = tooLarge
		return c, nil
	}
	body := req.Body
	if req.GetBody != nil {
		if body, err = req.GetBody(); err != nil {
			return c, fmt.Errorf("read the body of a request to record it: %w", err)
		}
		defer body.Close()
	}
	c.Data, err = io.ReadAll(io.LimitReader(body, largestTranscribed+1))
	if err != nil {
		return c, fmt.Errorf("read the body of a request to record it: %w", err)
	}
	if req.GetBody == nil { // what was read is sent again
		req.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(c.Data), body), body}
	}
	if len(c.Data) > largestTranscribed {
		c.Data, c.Missing = nil, tooLarge
	}
	return c, nil
}

// transcribedBody is the body of an answer, which is written when it has been read. One goroutine reads
// it; any may close it meanwhile.
type transcribedBody struct {
	io.ReadCloser
	run    *recording.Run
	number int
	code   int
	again  string // Retry-After
	mu     struct {
		sync.Mutex
		about recording.Content
		over  bool // it is too large
		ended bool
	}
}

// Read implements io.Reader.
func (b *transcribedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.ended {
		return n, err
	}
	if b.mu.over = b.mu.over || len(b.mu.about.Data)+n > largestTranscribed; !b.mu.over {
		b.mu.about.Data = append(b.mu.about.Data, p[:n]...)
	}
	if err != nil {
		b.endLocked(err)
	}
	return n, err
}

// Close implements io.Closer. A client that has what it needs may not read to the end.
func (b *transcribedBody) Close() error {
	b.mu.Lock()
	b.endLocked(io.EOF)
	b.mu.Unlock()
	return b.ReadCloser.Close()
}

func (b *transcribedBody) endLocked(err error) {
	if b.mu.ended {
		return
	}
	b.mu.ended = true
	about := b.mu.about
	b.mu.about.Data = nil
	if b.mu.over {
		about.Data, about.Missing = nil, tooLarge
	}
	if err == io.EOF {
		err = nil
	}
	b.run.Answer(b.number, b.code, b.again, about, err)
}

// Tree returns a body as JSON values, with the Go types of scheme if it is protobuf.
func Tree(scheme *runtime.Scheme, contentType string, body []byte) (any, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		return nil, fmt.Errorf("read a body of content type %q: %w", contentType, err)
	}
	if media == runtime.ContentTypeProtobuf {
		return protobufTree(scheme, contentType, body)
	}
	if media == "application/apply-patch+yaml" || media == "application/yaml" {
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, errors.New("a body is not YAML") // its text is not for others
		}
	}
	var tree any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &tree); err != nil {
		return nil, errors.New("a body is not JSON")
	}
	return tree, nil
}

func protobufTree(scheme *runtime.Scheme, contentType string, body []byte) (any, error) {
	a, err := Open(contentType, body)
	if err != nil {
		return nil, err
	}
	obj, err := scheme.New(a.Kind)
	if err != nil {
		return nil, err
	}
	if err := a.Decode(obj); err != nil {
		return nil, err
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := unstructured.Unstructured{Object: tree}
	u.SetGroupVersionKind(a.Kind)
	return tree, nil
}
