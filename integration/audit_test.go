// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package integration_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// auditPolicy makes the server log all writes with their authors, and reads of Leases.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources: [{group: coordination.k8s.io, resources: [leases]}, {group: "", resources: [configmaps]}]
- level: None
`

// auditLog is the file in which the server logs the requests that it has answered.
type auditLog string

// audited is one logged request.
type audited struct {
	Verb, UserAgent string
	ObjectRef       struct{ Resource, Namespace, Name string }
	ResponseStatus  struct{ Code int }
	Received        metav1.MicroTime `json:"requestReceivedTimestamp"`
	Answered        metav1.MicroTime `json:"stageTimestamp"`
}

func (a audited) by() string {
	name, _, _ := strings.Cut(a.UserAgent, "/")
	return name
}

func (a audited) String() string {
	return fmt.Sprintf("%s %s %s %s by %s: %d", a.Received.Format("04:05.000000"), a.Verb, a.ObjectRef.Resource, a.ObjectRef.Name, a.UserAgent, a.ResponseStatus.Code)
}

// in returns the requests for a namespace, in the order of their arrival.
func (l auditLog) in(ns string) (out []audited) {
	GinkgoHelper()
	text, err := os.ReadFile(string(l))
	Expect(err).NotTo(HaveOccurred())
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var a audited
		if !bytes.Contains(lines.Bytes(), []byte(ns)) || json.Unmarshal(lines.Bytes(), &a) != nil {
			continue // of another namespace, or incomplete
		}
		if a.ObjectRef.Namespace == ns {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b audited) int { return a.Received.Compare(b.Received.Time) })
	return out
}

func (l auditLog) count(ns, by, verb, resource string) int {
	return carriedOut(l.in(ns), by, verb, resource)
}

// carriedOut returns the number of requests of one kind that the server has carried out.
func carriedOut(all []audited, by, verb, resource string) (n int) {
	for _, a := range all {
		if a.by() == by && a.Verb == verb && a.ObjectRef.Resource == resource && a.ResponseStatus.Code < 300 {
			n++
		}
	}
	return n
}

func (l auditLog) awaits(ns, by, verb, resource string) {
	GinkgoHelper()
	Eventually(l.count).WithArguments(ns, by, verb, resource).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond).Should(BeNumerically(">", 0))
}

func (l auditLog) awaitsMore(ns, by, verb, resource string) {
	GinkgoHelper()
	now := l.count(ns, by, verb, resource)
	Eventually(l.count).WithArguments(ns, by, verb, resource).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond).Should(BeNumerically(">", now+5))
}

// quiet waits until by has written nothing for a while.
func (l auditLog) quiet(ns, by string) {
	GinkgoHelper()
	before := -1
	Eventually(func() bool {
		was := before
		before = l.count(ns, by, "patch", "configmaps")
		return was == before
	}).WithPolling(500 * time.Millisecond).Should(BeTrue())
}

// stolen returns the requests since a client outside the election changed the lease.
func (l auditLog) stolen(ns string) []audited {
	GinkgoHelper()
	all := l.in(ns)
	at := slices.IndexFunc(all, func(a audited) bool { return a.ObjectRef.Resource == "leases" && a.Verb == "patch" })
	Expect(at).NotTo(Equal(-1))
	theft := all[at]
	return slices.DeleteFunc(all[at:], func(a audited) bool { // a renewal that was carried out before the theft
		return a.ObjectRef.Resource == "leases" && a.Verb == "update" && a.Answered.Before(&theft.Answered)
	})
}

// takes reports whether a is a write by which a client other than holder acquires the
// lease.
func (a audited) takes(holder string) bool {
	return a.ObjectRef.Resource == "leases" && (a.Verb == "update" || a.Verb == "create") &&
		a.ResponseStatus.Code < 300 && strings.HasPrefix(a.by(), "replica-") && a.by() != holder
}

// late returns the writes of replicas that arrived after another had acquired the lease,
// and the number of all writes that the server carried out.
func (l auditLog) late(ns string) (late []string, all int) {
	GinkgoHelper()
	holder := ""
	for _, a := range l.in(ns) {
		switch {
		case a.takes(holder):
			holder = a.by()
		case a.Verb == "patch" && a.ObjectRef.Resource == "configmaps" && a.ResponseStatus.Code < 300:
			all++
			if a.by() != holder {
				late = append(late, a.String())
			}
		}
	}
	return late, all
}

// handOver returns the time from the arrival of first's last write to the lease, its
// release, to that of next's first write.
func (l auditLog) handOver(ns, first, next string) time.Duration {
	GinkgoHelper()
	var released, wrote time.Time
	for _, a := range l.in(ns) {
		switch {
		case a.by() == first && a.Verb == "update" && a.ObjectRef.Resource == "leases":
			released = a.Received.Time
		case a.by() == next && a.Verb == "patch" && wrote.IsZero():
			wrote = a.Received.Time
		}
	}
	return wrote.Sub(released)
}
