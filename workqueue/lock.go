// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"runtime"
	"sync"
)

// lockTries is how often a lock gives its processor to others before it waits in the mutex's own queue.
const lockTries = 32

// mutex is a sync.Mutex that yields before it parks. The queue's critical sections are shorter than parking and waking a
// goroutine; once dozens of goroutines are parked on a sync.Mutex it goes over to handing itself from one to the next, and
// each operation costs a switch.
type mutex struct{ m sync.Mutex }

func (m *mutex) Lock() {
	if !m.m.TryLock() {
		m.wait()
	}
}

func (m *mutex) wait() {
	for range lockTries {
		runtime.Gosched()
		if m.m.TryLock() {
			return
		}
	}
	m.m.Lock()
}

func (m *mutex) Unlock() { m.m.Unlock() }
