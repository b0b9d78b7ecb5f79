// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import "sync"

const (
	lockTries = 4
	backOff   = 4000 // turns of an empty loop before the first try, about a microsecond; twice as many before each next one
)

// mutex is a sync.Mutex that backs off before it waits in line. The queue's critical sections are far shorter than parking and
// waking a goroutine, and what they touch has to move to the processor that runs them: under contention it is cheaper by a
// factor when one processor does dozens of operations in a row than when two take turns. So who finds the lock taken leaves it
// alone for a while, and does not look at it at once again. In the end it waits in the mutex, where nobody starves.
type mutex struct{ m sync.Mutex }

func (m *mutex) Lock() {
	if !m.m.TryLock() {
		m.wait()
	}
}

func (m *mutex) wait() {
	for try := range lockTries {
		for range backOff << try {
		}
		if m.m.TryLock() {
			return
		}
	}
	m.m.Lock()
}

func (m *mutex) Unlock() { m.m.Unlock() }
