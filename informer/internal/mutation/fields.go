// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"strings"

	"github.com/flyball-dev/flyball/internal/fielddiff"
	"github.com/flyball-dev/flyball/kube"
)

// differences returns the fields in which two objects differ. An object that changes while it is
// read differs.
func differences(was, is kube.Object) (fields []string) {
	defer func() {
		if recover() != nil {
			fields = append(fields, "(changing while it is read)")
		}
	}()
	for _, path := range fielddiff.All(was, is).Paths {
		if !strings.HasPrefix(path, "[") {
			path = "." + path
		}
		fields = append(fields, path)
	}
	return fields
}
