// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	path       = "/debug/flyball/v1/"
	mostBytes  = 64 << 20 // of an answer
	perRequest = 500      // keys: as many as an operator gives
	patience   = 30 * time.Second
)

// operator answers questions about one program.
type operator struct {
	name    string // for errors
	host    string
	scheme  string // "http", until the server wants TLS
	private bool   // nobody on the way can read what is sent
	client  *http.Client
	// token returns the token to send once the server asks for one. Empty: there is none.
	token func(context.Context) (string, error)
	sends string // the token that is sent
	// pod is its NAMESPACE/NAME, and member its own name among the replicas that share objects; empty: it
	// is in none, or shares nothing.
	pod, member string
	forwards    *forwarder // nil: none are needed
}

// newOperator returns the program at host, reached by dial. Without a dial, at a host of the
// network.
func newOperator(name, host string, dial func(context.Context) (net.Conn, error), token func(context.Context) (string, error)) *operator {
	address, _, _ := net.SplitHostPort(host)
	private := dial != nil || address == "localhost" || net.ParseIP(address).IsLoopback()
	transport := &http.Transport{
		// The certificate is self-signed by default, and nobody is between.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: private}, //nolint:gosec // as above
	}
	if dial != nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	}
	return &operator{
		name: name, host: host, scheme: "http", private: private, token: token,
		client: &http.Client{Transport: transport, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

func (o *operator) close() {
	o.client.CloseIdleConnections()
	if o.forwards != nil {
		o.forwards.close()
	}
}

// answerError is an answer that is not the one that was asked for.
type answerError struct {
	code int
	text string
}

func (e *answerError) Error() string { return e.text }

// isElsewhere reports whether another replica may be able to do what was asked for.
func isElsewhere(err error) bool {
	answer, ok := errors.AsType[*answerError](err)
	return ok && (answer.code == http.StatusNotFound || answer.code == http.StatusMisdirectedRequest)
}

// isMissing reports whether the operator knows what was asked for by no name.
func isMissing(err error) bool {
	answer, ok := errors.AsType[*answerError](err)
	return ok && answer.code == http.StatusNotFound
}

// get returns the answer to what, which is escaped, below path.
func (o *operator) get(ctx context.Context, what string, query url.Values) (json.RawMessage, error) {
	return o.ask(ctx, http.MethodGet, what, query)
}

// ask is get by another method. What it changes is changed once: a request is repeated only if the
// operator has refused it.
func (o *operator) ask(ctx context.Context, method, what string, query url.Values) (json.RawMessage, error) {
	for {
		code, body, err := o.once(ctx, method, what, query)
		if err != nil {
			return nil, err
		}
		switch {
		case code == http.StatusOK && json.Valid(body):
			return body, nil
		case code == http.StatusBadRequest && o.scheme == "http" && strings.Contains(string(body), "HTTPS server"):
			o.scheme = "https"
		case code == http.StatusUnauthorized && o.sends == "":
			if err := o.authenticate(ctx); err != nil {
				return nil, err
			}
		default:
			return nil, o.refused(method, code, body)
		}
	}
}

func (o *operator) once(ctx context.Context, method, what string, query url.Values) (int, []byte, error) {
	answer, err := o.send(ctx, o.client, method, what, query)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostBytes+1))
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer of %s: %w", o.name, err)
	}
	if len(body) > mostBytes {
		return 0, nil, fmt.Errorf("the answer of %s is longer than %d MiB", o.name, mostBytes>>20)
	}
	return answer.StatusCode, body, nil
}

func (o *operator) send(ctx context.Context, by *http.Client, method, what string, query url.Values) (*http.Response, error) {
	to := o.scheme + "://" + o.host + path + what
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, to, nil)
	if err != nil {
		return nil, err
	}
	if o.sends != "" {
		r.Header.Set("Authorization", "Bearer "+o.sends)
	}
	answer, err := by.Do(r)
	if err != nil {
		return nil, o.unreached(err)
	}
	return answer, nil
}

// stream returns an answer that takes its time. Something else has been asked before, so that it is
// known how the operator wants to be asked.
func (o *operator) stream(ctx context.Context, what string, query url.Values) (io.ReadCloser, error) {
	patient := *o.client
	patient.Timeout = 0
	answer, err := o.send(ctx, &patient, http.MethodGet, what, query)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		defer func() { _ = answer.Body.Close() }()
		body, _ := io.ReadAll(io.LimitReader(answer.Body, mostBytes)) // what there is of it
		return nil, o.refused(http.MethodGet, answer.StatusCode, body)
	}
	return answer.Body, nil
}

// authenticate finds the token to send.
func (o *operator) authenticate(ctx context.Context) error {
	const choose = "pass --token, or --as-service-account NAMESPACE/NAME to request one for a ServiceAccount"
	if !o.private && o.scheme == "http" {
		return fmt.Errorf("%s wants a token, but does not serve TLS, so that others could read it", o.name)
	}
	token, err := o.token(ctx)
	if err != nil {
		return fmt.Errorf("%s wants a token: %w", o.name, err)
	}
	if token == "" {
		return fmt.Errorf("%s wants a token (its metrics are guarded), and the user of the kubeconfig has none: %s", o.name, choose)
	}
	o.sends = token
	return nil
}

// unreached explains why there is no answer.
func (o *operator) unreached(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // without the address, which may be invented
	}
	hint := ""
	if strings.Contains(err.Error(), "refused") {
		hint = "\nnothing listens there: --port (or --address) names the port of its metrics, which the line \"Started the manager\" of its log has"
	}
	return fmt.Errorf("ask %s: %w%s", o.name, err, hint)
}

const rule = "\n  kubectl create clusterrole flyball-console --verb=%s '--non-resource-url=/debug/flyball/*'\n" +
	"  kubectl create clusterrolebinding flyball-console --clusterrole=flyball-console --user=NAME"

// refused explains an answer.
func (o *operator) refused(method string, code int, body []byte) error {
	var said struct{ Error, Message string }
	_ = json.Unmarshal(body, &said) // it may be text
	text := fmt.Sprintf("ask %s: %d %s", o.name, code, http.StatusText(code))
	switch {
	case code < 300:
		text = fmt.Sprintf("%s does not answer with JSON below %s; is it an operator of Flyball?", o.name, path)
	case said.Error != "":
		text = said.Error
	case code == http.StatusUnauthorized:
		text += ": the API server does not accept the token; pass another by --token, or --as-service-account NAMESPACE/NAME"
	case code == http.StatusForbidden:
		text += ": " + cmp.Or(said.Message, "the user may not get "+path+"*") + "\na cluster administrator allows it by" + fmt.Sprintf(rule, strings.ToLower(method))
	case code == http.StatusMethodNotAllowed:
		text = o.name + " takes no actions: its program sets MetricsServing.Actions to take some"
	case code == http.StatusNotFound:
		text = fmt.Sprintf("%s serves no %s: its Flyball is older than this, or its metrics are served without a guard on an address other than loopback; "+
			"set -metrics-secure -metrics-guard", o.name, path)
		code = 0 // nothing that was asked for is missing
	case said.Message != "":
		text += ": " + said.Message
	}
	return &answerError{code, text}
}

func (o *operator) overview(ctx context.Context) (raw json.RawMessage, out overview, err error) {
	raw, err = o.get(ctx, "overview", nil)
	if err == nil {
		err = decode(raw, &out)
	}
	return raw, out, err
}

// query selects keys.
type query struct {
	filter, contains, state, sort string
	limit                         int // 0: no limit
	namespace                     string
}

// keys returns the keys of a controller, which may be many pages.
func (o *operator) keys(ctx context.Context, name string, q query) (all keyPage, err error) {
	if q.namespace != "" {
		q.contains = q.namespace + "/"
	}
	left := cmp.Or(q.limit, -1)
	for offset := 0; ; {
		page, err := o.keysFrom(ctx, name, q, offset)
		if err != nil {
			return all, err
		}
		if left > 0 && len(all.Keys)+len(page.Keys) > left {
			page.Keys = page.Keys[:left-len(all.Keys)]
		}
		page.Keys = append(all.Keys, page.Keys...)
		all = page
		if all.Next == 0 || left == len(all.Keys) {
			return all, nil
		}
		if all.Next <= offset {
			return all, fmt.Errorf("the operator answers the page from key %d with another that begins at %d", offset, all.Next)
		}
		offset = all.Next
	}
}

// keysFrom returns one page of the keys.
func (o *operator) keysFrom(ctx context.Context, name string, q query, offset int) (page keyPage, err error) {
	values := url.Values{"offset": {strconv.Itoa(offset)}, "limit": {strconv.Itoa(perRequest)}}
	for field, value := range map[string]string{"filter": q.filter, "contains": q.contains, "state": q.state, "sort": q.sort} {
		if value != "" {
			values.Set(field, value)
		}
	}
	raw, err := o.get(ctx, "controllers/"+url.PathEscape(name)+"/keys", values)
	if err != nil {
		return page, err
	}
	if err := decode(raw, &page); err != nil {
		return page, err
	}
	page.Keys = slices.DeleteFunc(page.Keys, func(raw json.RawMessage) bool {
		var row keyRow
		return decode(raw, &row) != nil || !strings.HasPrefix(row.Key, q.contains) && q.namespace != ""
	})
	return page, nil
}

// history returns a key of a controller with its runs.
func (o *operator) history(ctx context.Context, name, key string) (raw json.RawMessage, out history, err error) {
	raw, err = o.get(ctx, "controllers/"+url.PathEscape(name)+"/key", url.Values{"key": {key}})
	if err == nil {
		err = decode(raw, &out)
	}
	return raw, out, err
}

func decode(raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("the operator's answer: %w; is this program as new as the operator?", err)
	}
	return nil
}
