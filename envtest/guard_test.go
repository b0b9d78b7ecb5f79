// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package envtest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/flyball-dev/flyball/envtest"
)

// victimVariable marks the test process to be killed.
const victimVariable = "FLYBALL_ENVTEST_VICTIM"

// A report describes the victim's environment.
type report struct {
	Dir  string
	Pids []int
}

// TestVictim is not a test: the spec below runs it. It starts an environment and waits to be killed.
func TestVictim(t *testing.T) {
	parent := os.Getenv(victimVariable)
	if parent == "" {
		t.Skip("only as the process to be killed")
	}
	env, err := envtest.Start(t.Context(), envtest.Options{Dir: parent})
	if err != nil {
		t.Fatal(err)
	}
	defer env.Stop()
	if err := json.NewEncoder(os.Stdout).Encode(report{Dir: env.Dir(), Pids: env.Pids()}); err != nil {
		t.Fatal(err)
	}
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // ends if the parent does
}

var _ = Describe("the guard", func() {
	It("ends all when the process of the tests is killed (E4)", func(ctx context.Context) {
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		parent := GinkgoT().TempDir()
		victim := exec.CommandContext(ctx, self, "-test.run=^TestVictim$")
		victim.Env = append(os.Environ(), victimVariable+"="+parent)
		victim.Stderr = GinkgoWriter
		input, err := victim.StdinPipe()
		Expect(err).NotTo(HaveOccurred())
		defer input.Close()
		output, err := victim.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(victim.Start()).To(Succeed())
		var said report
		Expect(json.NewDecoder(output).Decode(&said)).To(Succeed())
		Expect(said.Pids).To(HaveEach(WithTransform(alive, BeTrue())))
		DeferCleanup(func() {
			for _, pid := range said.Pids {
				if CurrentSpecReport().Failed() && alive(pid) {
					_ = syscall.Kill(pid, syscall.SIGKILL) // what the guard left
				}
			}
		})

		Expect(victim.Process.Kill()).To(Succeed())
		_ = victim.Wait()
		for _, pid := range said.Pids {
			Eventually(alive).WithArguments(pid).Should(BeFalse())
		}
		Eventually(func() ([]string, error) { return filepath.Glob(filepath.Join(parent, "*")) }).Should(BeEmpty())
	}, NodeTimeout(5*time.Minute))
})
