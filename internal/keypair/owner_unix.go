// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package keypair

import (
	"fmt"
	"io/fs"
	"syscall"
)

// checkOwner returns an error if the file of info belongs to a user other than
// root and self.
func checkOwner(name string, info fs.FileInfo, self int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if owner := int(stat.Uid); owner != 0 && owner != self {
		return fmt.Errorf("%s belongs to user %d, and not to root or to user %d, which this program runs as", name, owner, self)
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%s can be written by every user", name)
	}
	return nil
}
