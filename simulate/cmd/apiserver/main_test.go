// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestMain runs the tests or, under a name of the drop-in, main.
func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); name == etcdName+exeSuffix || name == kubeAPIServerName+exeSuffix {
		main()
		return
	}
	os.Exit(m.Run())
}

// buffer is a log that is read while it is written.
type buffer struct {
	mu struct {
		sync.Mutex
		bytes.Buffer
	}
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.Buffer.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.Buffer.String()
}

// running is the command in this process.
type running struct {
	kubeconfig string
	config     *rest.Config
	client     *http.Client
	log        *buffer
	stop       func() error // ends it and returns what run did
}

// start runs the command until stop is called or the test ends.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	read, write := io.Pipe()
	r := &running{log: &buffer{}}
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = run(ctx, "apiserver", args, write, r.log)
		_ = write.Close()
	}()
	r.stop = func() error {
		cancel()
		<-done
		return err
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("the command ended with %v", err)
		}
	})
	line, _ := bufio.NewReader(read).ReadString('\n')
	if r.kubeconfig = strings.TrimSpace(line); r.kubeconfig == "" {
		<-done
		t.Fatalf("apiserver %q ended with %v\n%s", args, err, r.log)
	}
	if r.config, err = clientcmd.BuildConfigFromFlags("", r.kubeconfig); err != nil {
		t.Fatal(err)
	}
	if r.client, err = rest.HTTPClientFor(r.config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

// send sends a request. The error is one of the connection.
func (r *running) send(t *testing.T, method, path, body string) (answer *http.Response, text string, err error) {
	t.Helper()
	asked, err := http.NewRequestWithContext(t.Context(), method, r.config.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		asked.Header.Set("Content-Type", "application/json")
	}
	if answer, err = r.client.Do(asked); err != nil {
		return nil, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	all, err := io.ReadAll(answer.Body)
	return answer, string(all), err
}

// ask sends a request whose answer must have a code, and returns the answer's body.
func (r *running) ask(t *testing.T, method, path, body string, code int) string {
	t.Helper()
	answer, text, err := r.send(t, method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if answer.StatusCode != code {
		t.Fatalf("%s %s: %d, want %d\n%s", method, path, answer.StatusCode, code, text)
	}
	return text
}

const configMaps = "/api/v1/namespaces/default/configmaps"

func configMap(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, name)
}

// boxCRD is the CRD of Boxes, whose size is at most 5.
const boxCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Box, plural: boxes}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer, maximum: 5}}}}
`

const boxes = "/apis/example.com/v1/namespaces/default/boxes"

// write writes a file into a new directory, which it returns.
func write(t *testing.T, name, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}
