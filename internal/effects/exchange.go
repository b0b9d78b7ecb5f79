// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/kube"
)

// maxBody is the largest body that is read to learn what a write did. The object of a
// larger one is only known to have changed.
const maxBody = 4 << 20

// exchange is a write that has been sent, and its answer.
type exchange struct {
	*Observer
	write Write
	req   *http.Request
	vague bool // the options of a deletion cannot be read
}

// complete reads from the request what its path does not say, and reports whether the write
// is to be seen: a dry run is not.
func (e *exchange) complete() bool {
	query := e.req.URL.Query()
	if query.Has("dryRun") {
		return false
	}
	if e.write.Verb == Change {
		return true
	}
	var options metav1.DeleteOptions
	body, whole := e.sent()
	switch {
	case !whole:
		e.vague = true
		return true
	case len(body) == 0:
		options = optionsIn(query)
	case e.decode(body, &options) != nil:
		e.vague = true
		return true
	}
	if options.PropagationPolicy != nil {
		e.write.Propagation = *options.PropagationPolicy
	}
	e.write.GracePeriod = options.GracePeriodSeconds
	if options.Preconditions != nil && options.Preconditions.UID != nil {
		e.write.UID = *options.Preconditions.UID
	}
	return len(options.DryRun) == 0
}

// optionsIn returns the options of a deletion without a body.
func optionsIn(query url.Values) metav1.DeleteOptions {
	var options metav1.DeleteOptions
	if policy := metav1.DeletionPropagation(query.Get("propagationPolicy")); policy != "" {
		options.PropagationPolicy = &policy
	}
	if seconds, err := strconv.ParseInt(query.Get("gracePeriodSeconds"), 10, 64); err == nil {
		options.GracePeriodSeconds = &seconds
	}
	return options
}

// sent returns the body of the request again.
func (e *exchange) sent() (body []byte, whole bool) {
	if e.req.Body == nil || e.req.Body == http.NoBody {
		return nil, true
	}
	if e.req.GetBody == nil {
		return nil, false
	}
	again, err := e.req.GetBody()
	if err != nil {
		return nil, false
	}
	defer again.Close()
	body, err = io.ReadAll(io.LimitReader(again, maxBody+1))
	return body, err == nil && len(body) <= maxBody
}

// decode reads a body of the request.
func (e *exchange) decode(body []byte, into any) error {
	content, err := Open(e.req.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	return content.Decode(into)
}

// touched tells the informers that the state of what was written is not known.
func (e *exchange) touched() { e.observe(e.write.Touched()) }

func (e *exchange) observe(w kube.Written) {
	if w.Key.Name == "" {
		w.Key.Name = e.created()
	}
	if w.Key.Name == "" && w.Effect != kube.Touched {
		return
	}
	e.receiver.Observe(w)
	if task := contextvalues.TaskOf(e.req.Context()); task != nil {
		task.Effected(w, 0)
	}
}

// created returns the name in the body of a create; empty if it has none.
func (e *exchange) created() string {
	body, whole := e.sent()
	var named metav1.PartialObjectMetadata
	if e.write.Verb != Change || !whole || e.decode(body, &named) != nil {
		return ""
	}
	return named.Name
}

// follow lets the answer be judged when its body has been read.
func (e *exchange) follow(resp *http.Response) {
	if e.vague || resp.Body == nil || resp.Header.Get("Content-Encoding") != "" {
		e.touched()
		return
	}
	b := &body{ReadCloser: resp.Body, exchange: e, contentType: resp.Header.Get("Content-Type"), length: resp.ContentLength}
	if 0 < b.length && b.length <= maxBody {
		b.data = make([]byte, 0, b.length)
	}
	resp.Body = b
}

// observeAnswer shows the informers what an answer means.
func (e *exchange) observeAnswer(contentType string, data []byte) {
	a, err := Open(contentType, data)
	if err != nil {
		e.touched()
		return
	}
	for _, w := range e.write.Effects(a, func() kube.Object { return e.empty(a) }) {
		e.observe(w)
	}
}

// empty returns an object that can hold the answer. JSON is read without a Go type: that
// of the scheme may lack fields, and informers convert what they need.
func (e *exchange) empty(a Answer) kube.Object {
	if a.Protobuf {
		if typed, err := e.scheme.New(e.write.Kind); err == nil {
			if obj, ok := typed.(kube.Object); ok {
				return obj
			}
		}
	}
	return &unstructured.Unstructured{}
}

// body is the body of an answer, which is judged when the last of it has been read. One
// goroutine reads it; any may close it.
type body struct {
	io.ReadCloser
	*exchange
	contentType string
	length      int64 // as the server said; -1: it did not
	read        int64
	data        []byte // what was read, up to maxBody
	judged      atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if b.read <= maxBody {
		b.data = append(b.data, p[:n]...)
	}
	if err != nil || b.read == b.length {
		b.end(err == nil || err == io.EOF)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.end(false)
	return b.ReadCloser.Close()
}

// end judges the answer once. whole reports whether all of it has been read.
func (b *body) end(whole bool) {
	switch {
	case !b.judged.CompareAndSwap(false, true):
	case whole && b.read <= maxBody:
		b.observeAnswer(b.contentType, b.data)
		b.data = nil
	default:
		b.touched()
	}
}
