// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"fmt"
	"regexp"
	"strings"
)

// Difference is one line of the ledger: a case in which the simulated server answers
// differently from a real one.
type Difference struct{ Case, What, Reason, Date string }

var day = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)

// ParseLedger parses the differences in the table whose first column is headed "Case". A
// difference without a reason or a date is an error.
func ParseLedger(text string) (map[string]Difference, error) {
	ledger := map[string]Difference{}
	inside := false
	for _, line := range strings.Split(text, "\n") {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
		case cells[0] == "Case":
			inside = true
		case !inside || strings.Trim(cells[0], "-") == "":
		case len(cells) != 4 || cells[1] == "" || cells[2] == "" || !day.MatchString(cells[3]):
			return nil, fmt.Errorf("ledger: %q is not a case, what differs, a reason and a date", line)
		case ledger[cells[0]].Case != "":
			return nil, fmt.Errorf("ledger: %s stands there twice", cells[0])
		default:
			ledger[cells[0]] = Difference{cells[0], cells[1], cells[2], cells[3]}
		}
	}
	return ledger, nil
}
