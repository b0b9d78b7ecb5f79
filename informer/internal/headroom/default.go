// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package headroom

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Shares of a limit that caches may take. With GOMEMLIMIT the garbage collector
// works more as memory becomes scarce; without it the heap grows to twice what
// is live.
const (
	ofGoLimit = 0.8
	ofCgroup  = 0.5
)

// Default returns the budget of a process. goLimit is GOMEMLIMIT as
// debug.SetMemoryLimit(-1) returns it; above the limit of the cgroup it is without effect. root
// is the file system with /proc and /sys. 0: the memory of the process is not limited.
func Default(goLimit int64, root fs.FS) int64 {
	limit := cgroupLimit(root)
	if goLimit > 0 && goLimit < math.MaxInt64 && !isPaced(goLimit) && (limit == 0 || goLimit <= limit) {
		return int64(ofGoLimit * float64(goLimit))
	}
	return int64(ofCgroup * float64(limit))
}

// cgroupLimit returns the least memory limit of the process's cgroup and those
// above it, if that is below the memory of the machine; 0: none.
func cgroupLimit(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := int64(math.MaxInt64)
	for line := range bytes.Lines(text) {
		// hierarchy:controllers:path
		parts := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(parts) < 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			least = min(least, limitAbove(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case hasController(parts[1], "memory"):
			least = min(least, limitAbove(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	if least >= machineMemory(root) {
		return 0 // cgroup v1 has a huge number in place of none
	}
	return least
}

func hasController(list, name string) bool {
	return slices.Contains(strings.Split(list, ","), name)
}

// limitAbove returns the least limit in file of the cgroup and those above it.
// In a container, the path may be that of the host, and the mount shows only the
// container's own.
func limitAbove(root fs.FS, mount, cgroup, file string) int64 {
	least := int64(math.MaxInt64)
	for dir := path.Clean("/" + cgroup); ; dir = path.Dir(dir) {
		if text, err := fs.ReadFile(root, path.Join(mount, dir, file)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 { // "max": none
				least = min(least, n)
			}
		}
		if dir == "/" {
			return least
		}
	}
}

// machineMemory returns the memory of the machine, the largest number if
// unknown.
func machineMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == "MemTotal:" {
			if kB, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				return kB << 10
			}
		}
	}
	return math.MaxInt64
}
