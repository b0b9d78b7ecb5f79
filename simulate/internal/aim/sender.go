// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package aim

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/simulate"
)

// senders finds the goroutine of a Go program that has sent a write, while it waits for the answer.
type senders struct {
	socket string         // empty: nobody is asked
	asking sync.Mutex     // one write is looked for at a time; guards writes
	mu     sync.Mutex     // guards open
	open   map[int]sender // by the number of the request
	// writes is which write came from a place of the code, where that was certain; several: there was more than one.
	writes map[string]string
}

// sender is a goroutine. The zero value is one that is not known.
type sender struct {
	goroutine, stack string
	user             bool // it runs a test, and not the program
}

// stacksWithin bounds how long the program may take to answer.
const stacksWithin = 5 * time.Second

// sends is a function of net/http that a goroutine is in while its request is not answered.
const sends = "\nnet/http.(*Client).do("

// calls are methods of clients by the verbs of their requests.
var calls = map[string][]string{
	"create": {".Create"}, "update": {".Update"}, "patch": {".Patch", ".Apply"}, "delete": {".Delete"}, "deletecollection": {".Delete"},
}

// of returns who has sent a write. sure is false if two goroutines may have.
func (s *senders) of(r simulate.Request) (from sender, sure bool) {
	if s.socket == "" || !r.Writes() {
		return sender{}, false
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	var found []sender
	for try := range mostTries {
		if try > 0 { // one of them may be on its way out, with its answer
			time.Sleep(betweenTries)
		}
		if found = s.sending(r.Verb); len(found) <= 1 {
			break
		}
	}
	write := r.Verb + " " + r.Kind.String() + "/" + r.Subresource
	if len(found) > 1 { // two of them wait for answers; what else do these places write?
		likely := slices.DeleteFunc(slices.Clone(found), func(one sender) bool {
			known := s.writes[one.place()]
			return known != "" && known != several && known != write
		})
		if len(likely) > 0 {
			found = likely
		}
	}
	if len(found) == 0 {
		return sender{}, false
	}
	s.mu.Lock()
	s.open[r.Number] = found[0]
	s.mu.Unlock()
	if len(found) == 1 {
		place := found[0].place()
		if known := s.writes[place]; known != "" && known != write {
			write = several
		}
		s.writes[place] = write
	}
	return found[0], len(found) == 1
}

const several = "several"

// place is what is the same whenever this code runs.
func (s sender) place() string {
	var places []string
	for line := range strings.SplitSeq(s.stack, "\n") {
		if at, _, found := strings.Cut(line, " +0x"); found && strings.HasPrefix(line, "\t") {
			places = append(places, at)
		}
	}
	return strings.Join(places, "")
}

const (
	mostTries    = 4
	betweenTries = 2 * time.Millisecond
)

// sending returns the goroutines that may wait for the answer to a write of which is not known whose it is.
func (s *senders) sending(verb string) []sender {
	taken := map[string]bool{}
	s.mu.Lock()
	for _, one := range s.open {
		taken[one.goroutine] = true
	}
	s.mu.Unlock()
	var certain, possible []sender
	for block := range strings.SplitSeq(s.stacks(), "\n\n") {
		number, _, _ := strings.Cut(strings.TrimPrefix(block, "goroutine "), " ")
		if !strings.Contains(block, sends) || taken[number] {
			continue
		}
		one := sender{number, block, tests(block)}
		possible = append(possible, one)
		if slices.ContainsFunc(calls[verb], func(call string) bool { return strings.Contains(block, call+"(") || strings.Contains(block, call+"[") }) {
			certain = append(certain, one)
		}
	}
	if len(certain) > 0 {
		return certain
	}
	return possible
}

// tests reports whether a goroutine runs a test: one of package testing, or a node of ginkgo.
func tests(stack string) bool {
	return strings.Contains(stack, "\ntesting.tRunner(") || strings.Contains(stack, "\ngithub.com/onsi/ginkgo/v2/internal.")
}

// stacks returns the stacks of the program; empty: it does not answer.
func (s *senders) stacks() string {
	c, err := net.DialTimeout("unix", s.socket, stacksWithin)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(stacksWithin))
	text, err := io.ReadAll(c)
	if err != nil {
		return ""
	}
	return string(text)
}

func (s *senders) known(request int) sender {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[request]
}

func (s *senders) forget(request int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, request)
}
