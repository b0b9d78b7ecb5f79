// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

func byImage(any) ([]string, error) { return nil, nil }

func enqueue(any) {}

var _ = watchWebsites
