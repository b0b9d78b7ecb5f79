// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package aim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/simulate"
)

// PlanFile is the name of a file with a Plan as JSON, beside the program of a server that others start.
const PlanFile = "doctor.json"

// Plan is what such a server is to do.
type Plan struct {
	// Server is the number of the server that the faults are for, from 1, in the order in which they start.
	Server int     `json:"server"`
	Faults []Fault `json:"faults,omitempty"`
	// Stacks is a unix socket at which the program under test, in Go, writes the stacks of its goroutines. Empty:
	// all writes are those of the program, and none are the user's.
	Stacks string `json:"stacks,omitempty"`
}

// Event is a line of a trace: a call of a simulate.Tracer, or a fault that has begun.
type Event struct {
	At    time.Duration     `json:"at"` // since the server has started
	Asked *simulate.Request `json:"asked,omitempty"`
	// Stack is that of the goroutine which has sent the request; empty: it is not known.
	Stack string `json:"stack,omitempty"`
	// Unsure: it may be another goroutine.
	Unsure bool `json:"unsure,omitempty"`
	// Answering and Answered are numbers of requests, from 1.
	Answering int              `json:"answering,omitempty"`
	Answered  int              `json:"answered,omitempty"`
	Code      int              `json:"code,omitempty"`
	Stored    *simulate.Change `json:"stored,omitempty"`
	Fault     string           `json:"fault,omitempty"`
}

// Beside is the Tracer of a server whose program has a plan beside it. It makes the faults happen, and writes a
// trace there.
type Beside struct {
	*Control
	senders senders
	start   time.Time
	mu      sync.Mutex
	trace   *os.File
}

// FindPlan reads the plan beside a program. It returns nil if there is none.
func FindPlan(program string) (*Beside, error) {
	dir := filepath.Dir(program)
	text, err := os.ReadFile(filepath.Join(dir, PlanFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var p Plan
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return nil, fmt.Errorf("read the plan beside %s: %w", program, err)
	}
	b := &Beside{start: time.Now(), senders: senders{socket: p.Stacks, open: map[int]sender{}, writes: map[string]string{}}}
	b.Control = New(nil, nil, func(f Fault) { b.write(Event{Fault: f.String()}) })
	for n := 1; b.trace == nil; n++ {
		b.trace, err = os.OpenFile(traceFile(dir, n), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("write a trace beside %s: %w", program, err)
		}
		if err == nil && n == p.Server {
			err = b.Arm(p.Faults...)
		}
	}
	return b, err
}

func traceFile(dir string, number int) string {
	return filepath.Join(dir, fmt.Sprintf("trace-%d.json", number))
}

// Traces returns the events of each server that has started beside a plan, in their order.
func Traces(dir string) (all [][]Event, err error) {
	for n := 1; ; n++ {
		file, err := os.Open(traceFile(dir, n))
		if errors.Is(err, fs.ErrNotExist) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		var events []Event
		lines := json.NewDecoder(file)
		for {
			var e Event
			if err = lines.Decode(&e); err != nil {
				break
			}
			events = append(events, e)
		}
		_ = file.Close()                                                     // read only
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) { // the server may have been killed
			return all, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		all = append(all, events)
	}
}

func (b *Beside) write(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.At = time.Since(b.start)
	line, err := json.Marshal(e)
	if err == nil {
		_, err = b.trace.Write(append(line, '\n'))
	}
	_ = err // the driver sees that the trace ends
}

// Asked finds out who asks, and makes faults happen.
func (b *Beside) Asked(r simulate.Request) {
	from, sure := b.senders.of(r)
	if from.user {
		r.Client = "user"
	}
	short := r
	short.Path, short.Query = "", ""
	b.write(Event{Asked: &short, Stack: from.stack, Unsure: r.Writes() && !sure})
	b.Control.Asked(r)
}

// Answering makes faults happen.
func (b *Beside) Answering(r simulate.Request) {
	if b.senders.known(r.Number).user {
		r.Client = "user"
	}
	b.write(Event{Answering: r.Number + 1})
	b.Control.Answering(r)
}

// Answered writes how a write has ended.
func (b *Beside) Answered(r simulate.Request, code int) {
	b.senders.forget(r.Number)
	if r.Writes() {
		b.write(Event{Answered: r.Number + 1, Code: code})
	}
}

// Stored writes a change.
func (b *Beside) Stored(c simulate.Change) { b.write(Event{Stored: &c}) }
