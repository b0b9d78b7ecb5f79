// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recorded_test

import (
	"context"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate/internal/transcript"
)

var (
	update = flag.Bool("update", false, "write what the real server answers as the transcripts")
	server = flag.String("server", "", "a kubeconfig of a running server, instead of one that the test starts")
	golden = flag.String("golden", "../testdata/golden", "the directory of the transcripts")
	seeds  = flag.Int("seeds", transcript.CommittedSeeds, "how many programs to draw and play")
)

// atOnce is the number of concurrent cases. Most of them wait most of the time.
const atOnce = "12"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code := m.Run()
	if real.env != nil {
		if err := real.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// real is the server that all tests share, started on first use.
var real struct {
	sync.Once
	env    *envtest.Environment
	target transcript.Target
	err    error
}

// realTarget returns the real server.
func realTarget(t *testing.T) transcript.Target {
	t.Helper()
	real.Do(func() { real.err = startReal() })
	if real.err != nil {
		t.Fatal(real.err)
	}
	return real.target
}

func startReal() (err error) {
	var cfg *rest.Config
	if *server != "" {
		cfg, err = clientcmd.BuildConfigFromFlags("", *server)
	} else if real.env, err = envtest.Start(context.Background(), envtest.Options{}); err == nil {
		cfg = real.env.Config()
	}
	if err != nil {
		return err
	}
	real.target = transcript.Target{Host: cfg.Host, Hooks: webhooks().URL, Trust: certificate()}
	if real.target.Client, err = rest.HTTPClientFor(cfg); err != nil {
		return err
	}
	real.target.Anonymous, err = rest.HTTPClientFor(rest.AnonymousClientConfig(cfg))
	return err
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
