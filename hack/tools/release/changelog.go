// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
)

const unreleased = "## Unreleased"

// released returns a changelog in which what is unreleased belongs to version.
func released(changelog, version, date string) (string, error) {
	body, err := section(changelog, unreleased)
	if err != nil {
		return "", err
	}
	if !strings.Contains(body, "\n- ") {
		return "", errors.New("the changelog has no line under Unreleased; there is nothing to release")
	}
	if _, err := section(changelog, heading(version)); err == nil {
		return "", fmt.Errorf("the changelog has a section for %s already; choose another version", version)
	}
	return headed(changelog, version, date), nil
}

// headed adds the heading of a version below that of what is unreleased.
func headed(text, version, date string) string {
	return strings.Replace(text, unreleased+"\n", unreleased+"\n\n"+heading(version)+" - "+date+"\n", 1)
}

// notes returns the section of a version, without its heading.
func notes(changelog, version string) (string, error) {
	body, err := section(changelog, heading(version))
	if err != nil {
		return "", err
	}
	_, body, _ = strings.Cut(body, "\n") // the date
	return strings.TrimSpace(body) + "\n", nil
}

func heading(version string) string { return "## [" + strings.TrimPrefix(version, "v") + "]" }

// section returns what follows a heading, up to the next of its level.
func section(changelog, heading string) (string, error) {
	_, body, found := strings.Cut("\n"+changelog, "\n"+heading)
	if !found {
		return "", fmt.Errorf("the changelog has no section %q", heading)
	}
	body, _, _ = strings.Cut(body, "\n## ")
	return body, nil
}
