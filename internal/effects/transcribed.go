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
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/recording"
)

// largestTranscribed is the largest body that a recording has.
const largestTranscribed = 8 << 20

// send sends a request of a reconcile, and writes it to the recording run, if there is one.
func (t recorded) send(req *http.Request, run *recording.Run) (*http.Response, error) {
	if run == nil || req.URL.Host != t.host || !Replayed(req, t.prefix) {
		return t.next.RoundTrip(req)
	}
	sent, err := ContentOf(req, t.prefix)
	if err != nil {
		return nil, err
	}
	number := run.Request(req.Method, PathOf(req, t.prefix), sent)
	resp, err := t.next.RoundTrip(req)
	about := recording.Content{Resource: sent.Resource, Subresource: sent.Subresource}
	if err != nil {
		run.Answer(number, 0, "", about, err)
		return resp, err
	}
	about.Type = resp.Header.Get("Content-Type")
	again := resp.Header.Get("Retry-After")
	switch {
	case resp.Body == nil || resp.StatusCode == http.StatusSwitchingProtocols:
		run.Answer(number, resp.StatusCode, again, about, nil)
	case strings.Contains(req.URL.RawQuery, "watch=") || strings.Contains(req.URL.RawQuery, "follow="):
		about.Missing = "it is a stream"
		run.Answer(number, resp.StatusCode, again, about, nil)
	case resp.Header.Get("Content-Encoding") != "":
		about.Missing = "it is compressed, as the program asked for"
		run.Answer(number, resp.StatusCode, again, about, nil)
	default:
		resp.Body = &transcribedBody{ReadCloser: resp.Body, run: run, number: number, code: resp.StatusCode, again: again, about: about}
	}
	return resp, nil
}

// Replayed reports whether a request belongs into a recording: discovery does not, whose answers a
// client keeps for all reconciles.
func Replayed(req *http.Request, prefix string) bool {
	_, ok := Parse(req.URL.Path, prefix)
	return ok
}

// PathOf returns the path of a request below that of the server, with its query.
func PathOf(req *http.Request, prefix string) string {
	path := strings.TrimPrefix(req.URL.Path, prefix)
	if req.URL.RawQuery != "" {
		path += "?" + req.URL.RawQuery
	}
	return path
}

// ContentOf returns the body of a request to a server below prefix, which can be sent nevertheless.
// The error is that of reading it.
func ContentOf(req *http.Request, prefix string) (c recording.Content, err error) {
	if to, ok := Parse(req.URL.Path, prefix); ok {
		c.Resource, c.Subresource = to.Resource.GroupResource(), to.Subresource
	}
	if c.Type = req.Header.Get("Content-Type"); req.Body == nil || req.Body == http.NoBody {
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
		c.Data, c.Missing = nil, fmt.Sprintf("it has more than %d MiB", largestTranscribed>>20)
	}
	return c, nil
}

// transcribedBody is the body of an answer, which is written when it has been read. One goroutine reads
// it; any may close it.
type transcribedBody struct {
	io.ReadCloser
	run    *recording.Run
	number int
	code   int
	again  string // Retry-After
	about  recording.Content
	over   bool // it is too large
	ended  atomic.Bool
}

// Read implements io.Reader.
func (b *transcribedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.over = b.over || len(b.about.Data)+n > largestTranscribed; !b.over {
		b.about.Data = append(b.about.Data, p[:n]...)
	}
	if err != nil {
		b.end(err)
	}
	return n, err
}

// Close implements io.Closer. A client that has what it needs may not read to the end.
func (b *transcribedBody) Close() error {
	b.end(io.EOF)
	return b.ReadCloser.Close()
}

func (b *transcribedBody) end(err error) {
	if !b.ended.CompareAndSwap(false, true) {
		return
	}
	if b.over {
		b.about.Data, b.about.Missing = nil, fmt.Sprintf("it has more than %d MiB", largestTranscribed>>20)
	}
	if err == io.EOF {
		err = nil
	}
	b.run.Answer(b.number, b.code, b.again, b.about, err)
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
			return nil, errors.New("a body is no YAML") // its text is not for others
		}
	}
	var tree any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &tree); err != nil {
		return nil, errors.New("a body is no JSON")
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
