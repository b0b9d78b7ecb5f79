// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe-core is licensed under the MPL 2.0, so that it is not in this repository.
const (
	axePackage  = "axe-core"
	axeVersion  = "4.14.1"
	axeChecksum = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

var errNoNpm = errors.New("SKIPPED: axe-core: there is no npm in the PATH to download it")

// axe returns the script of axe-core, from the user's cache or else from npm's registry.
var axe = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "flyball", "axe-core")
	file := filepath.Join(dir, axePackage+"-"+axeVersion+".tgz")
	packed, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		npm, missing := exec.LookPath("npm")
		if missing != nil {
			return "", errNoNpm
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		cmd := exec.Command(npm, "pack", "--ignore-scripts", "--silent", "--pack-destination", dir, axePackage+"@"+axeVersion)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("download axe-core: %w: %s", err, out)
		}
		packed, err = os.ReadFile(file)
	}
	if err != nil {
		return "", err
	}
	if sum := sha512.Sum512(packed); base64.StdEncoding.EncodeToString(sum[:]) != axeChecksum {
		return "", fmt.Errorf("%s is not what npm's registry had when this test was written: delete it to download it again", file)
	}
	return unpacked(packed, "package/axe.min.js")
})

// unpacked returns a file of a tar archive.
func unpacked(packed []byte, name string) (string, error) {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	for files := tar.NewReader(plain); ; {
		file, err := files.Next()
		if err != nil {
			return "", fmt.Errorf("find %s in axe-core: %w", name, err)
		}
		if file.Name == name {
			text, err := io.ReadAll(files)
			return string(text), err
		}
	}
}

// violation is what axe-core found.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

// accessible fails the test if axe-core finds a violation of WCAG 2 A or AA.
func (b *tab) accessible(page string) {
	b.t.Helper()
	script, err := axe()
	if errors.Is(err, errNoNpm) {
		b.t.Log(err)
		return
	}
	if err != nil {
		b.t.Fatal(err)
	}
	for _, v := range b.violations(page, script) {
		var where strings.Builder
		for _, node := range v.Nodes[:min(len(v.Nodes), 5)] {
			fmt.Fprintf(&where, "\n  %s\n    %s", node.HTML, strings.ReplaceAll(node.FailureSummary, "\n", "\n    "))
		}
		b.t.Errorf("%s: %s (%s, %d places): %s%s", page, v.ID, v.Impact, len(v.Nodes), v.Help, where.String())
	}
}

// violations runs the script of axe-core.
func (b *tab) violations(page, script string) (all []violation) {
	b.t.Helper()
	const look = `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"]})
		.then((r) => JSON.stringify(r.violations))`
	do(b, "load axe-core", chromedp.Evaluate[bool](script+"; true"))
	found := do(b, "axe-core of "+page, chromedp.Evaluate[string](look, chromedp.EvalAwaitPromise))
	if err := json.Unmarshal([]byte(found), &all); err != nil {
		b.t.Fatalf("axe-core of %s answers %q: %v", page, found, err)
	}
	return all
}

// The tests of pages show something only if axe-core finds what is wrong.
func TestAxe_FindsAViolation(t *testing.T) {
	script, err := axe()
	if err != nil {
		t.Skip(err)
	}
	tab := open(t, chromium(t), forms[0])
	do(tab, "open a page", chromedp.Navigate(`data:text/html,<title>t</title><main><img src="data:,"><p style="color:%23aaa">pale`))
	if found := tab.violations("a page", script); len(found) != 3 {
		t.Errorf("axe-core finds %d violations, want those of the language, the picture and the colour: %+v", len(found), found)
	}
}
