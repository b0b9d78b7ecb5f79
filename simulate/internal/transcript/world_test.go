// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/transcript"
)

// simulated runs test in a bubble with its own simulated server.
func simulated(t *testing.T, test func(t *testing.T, target transcript.Target)) {
	t.Helper()
	webhooks() // outside the bubble: all tests share them
	synctest.Test(t, func(t *testing.T) {
		s, network := simulate.New(simulate.Options{
			IgnoreShardSelectors: true, // the gate is off in the servers of the transcripts
			Authorization:        true, Tokens: map[string]simulate.User{
				adminToken: {Name: "envtest-admin", Groups: []string{"system:masters"}},
			},
		}), simulate.NewNetwork()
		serving, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		defer group.Wait()
		defer stop()
		group.Go(func() {
			if err := s.Run(serving, network.Listener()); err != nil {
				t.Errorf("the simulated server ended: %v", err)
			}
		})
		anonymous := &http.Client{Transport: network.Transport()}
		defer anonymous.CloseIdleConnections()
		client := &http.Client{Transport: admin{anonymous.Transport}}
		test(t, transcript.Target{Host: "http://simulated", Client: client, Anonymous: anonymous, Hooks: webhooks().URL, Trust: certificate()})
	})
}

const adminToken = "admin"

// admin adds the credentials of an administrator, as on the real server.
type admin struct{ http.RoundTripper }

func (a admin) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+adminToken)
	return a.RoundTripper.RoundTrip(r)
}

// webhooks listen until the process ends.
var webhooks = sync.OnceValue(func() *httptest.Server {
	s := httptest.NewUnstartedServer(transcript.Webhooks())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // cases test a server that does not trust them
	s.StartTLS()
	return s
})

func certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhooks().Certificate().Raw})
}
