// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/simulate"
)

// dial is a connection to l over which HTTP/1 is spoken by hand, as its
// administrator.
func dial(t *testing.T, l *simulate.Loopback) *tls.Conn {
	t.Helper()
	cfg := l.Config()
	cfg.NextProtos = []string{"http/1.1"}
	secured, err := rest.TLSConfigFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.Dial("tcp", strings.TrimPrefix(cfg.Host, "https://"), secured)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// What comes over a connection that no client of Kubernetes would send: it is
// refused, or the connection ends, and nothing is stored.
func TestLoopback_BadInputOnTheWire_S7(t *testing.T) {
	l, _ := listening(t, simulate.ListenOptions{})
	before := l.Server().Revision()
	post := "POST " + mapsPath + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
	whole := `{"metadata":{"name":"a"}}`
	for name, c := range map[string]struct {
		text string
		want int    // 0: the connection ends without an answer
		says string // in the answer
	}{
		"no HTTP":              {"\x00\x01\x02\r\n\r\n", 400, ""},
		"an unknown method":    {"BREW " + mapsPath + " HTTP/1.1\r\nHost: a\r\n\r\n", 405, `"reason":"MethodNotAllowed"`},
		"no host":              {"GET /api HTTP/1.1\r\n\r\n", 400, "missing required Host header"},
		"another protocol":     {"GET /api HTTP/7.0\r\nHost: a\r\n\r\n", 505, ""},
		"a star":               {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 200, ""},
		"a tunnel":             {"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 404, ""},
		"broken escapes":       {"GET /api/v1/%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, ""},
		"escaped slashes":      {"GET /api/v1/namespaces/a%2Fb/configmaps/c HTTP/1.1\r\nHost: a\r\n\r\n", 404, ""},
		"a header too large":   {"GET /api HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n", 431, ""},
		"half a body":          {post + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(whole), whole[:10]), 500, `"message":"unexpected EOF","code":500`},
		"less than half":       {post + "Content-Length: 1000000\r\n\r\n" + whole, 500, `"message":"unexpected EOF","code":500`},
		"a negative length":    {post + "Content-Length: -5\r\n\r\n" + whole, 400, ""},
		"two lengths":          {post + "Content-Length: 5\r\nContent-Length: 25\r\n\r\n" + whole, 400, ""},
		"chunks without sizes": {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + whole, 500, `"message":"invalid byte in chunk length","code":500`},
		"chunks that end":      {post + "Transfer-Encoding: chunked\r\n\r\n19\r\n" + whole + "\r\n", 500, `"message":"unexpected EOF","code":500`},
		"an unknown encoding":  {post + "Transfer-Encoding: brotli\r\n\r\n" + whole, 501, ""},
		"3 MiB and one":        {post + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", 3<<20+1, strings.Repeat(" ", 3<<20+1)), 413, `"message":"Request entity too large: limit is 3145728","reason":"RequestEntityTooLarge"`},
	} {
		conn := dial(t, l)
		_, sent := io.WriteString(conn, c.text) // who is refused early does not read it all
		_ = conn.CloseWrite()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v, sent with %v; want %d", name, err, sent, c.want)
			continue
		}
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != c.want || !strings.Contains(string(body), c.says) {
			t.Errorf("%s: %s %.200s, want %d and %s", name, answer.Status, body, c.want, c.says)
		}
		conn.Close()
	}
	address := strings.TrimPrefix(l.Config().Host, "https://")
	for _, text := range []string{"\x16\x03\x01\xff\xff" + strings.Repeat("x", 1000), ""} { // no TLS

		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn) // returns when it is closed, in whatever way
		conn.Close()
	}
	if after := l.Server().Revision(); after != before {
		t.Errorf("the revision moved from %d to %d: a refusal stores nothing", before, after)
	}
	if answer, body := fetch(t, clientOf(t, l.Config()), l.Config().Host+mapsPath); answer.StatusCode != http.StatusOK {
		t.Errorf("after all this a list is %s %s, want 200", answer.Status, body)
	}
}

func TestLoopback_OldClients(t *testing.T) {
	l, _ := listening(t, simulate.ListenOptions{})
	conn := dial(t, l)
	if _, err := io.WriteString(conn, "GET /version HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn) // which ends, as HTTP/1.0 has it
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.0 200 OK\r\n") || !strings.Contains(string(text), `"gitVersion"`) {
		t.Errorf("%v, %s; want the version", err, text)
	}
}
