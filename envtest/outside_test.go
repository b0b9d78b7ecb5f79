// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/flyball-dev/flyball/envtest"
)

// outsideTest is a user's test, in a module with this one as its only dependency.
const outsideTest = `package outside

import (
	"testing"

	"github.com/flyball-dev/flyball/envtest"
)

func TestOutside(t *testing.T) {
	env, err := envtest.Start(t.Context(), envtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := env.Kubectl(t.Context(), "version")
	if err != nil {
		t.Error(err)
	}
	t.Logf("kubectl and server: %s", out)
	if err := env.Stop(); err != nil {
		t.Error(err)
	}
	dir, err := envtest.Binaries(t.Context(), envtest.BinariesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("binaries: %s", dir)
}
`

var _ = Describe("a module outside this repository", func() {
	It("gets the same binaries by calling envtest", func(ctx context.Context) {
		root, err := filepath.Abs("..")
		Expect(err).NotTo(HaveOccurred())
		sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
		Expect(err).NotTo(HaveOccurred())
		dir := GinkgoT().TempDir()
		for name, content := range map[string]string{
			"go.mod":          fmt.Sprintf("module example.test/outside\n\ngo 1.26.0\n\nrequire github.com/flyball-dev/flyball v0.0.0\n\nreplace github.com/flyball-dev/flyball => %q\n", root),
			"go.sum":          string(sums),
			"outside_test.go": outsideTest,
		} {
			Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
		}
		want, err := envtest.Binaries(ctx, envtest.BinariesOptions{Output: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())

		cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", ".")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
		Expect(strings.Split(string(out), "\n")).To(ContainElement(HaveSuffix("binaries: " + want)))
	}, NodeTimeout(10*time.Minute))
})
