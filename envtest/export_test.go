// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

// Pids returns the processes of an environment: its running servers and its guard.
func (e *Environment) Pids() []int {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	var pids []int
	for _, p := range []*process{e.etcdProc, e.apiServer} {
		if p != nil {
			pids = append(pids, p.cmd.Process.Pid)
		}
	}
	if e.guard.cmd != nil {
		pids = append(pids, e.guard.cmd.Process.Pid)
	}
	return pids
}
