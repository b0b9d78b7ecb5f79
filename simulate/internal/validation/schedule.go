// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a machine without time zones refuses no other ones

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateSchedule(schedule string, zone *string, spec *field.Path) (errs field.ErrorList) {
	at := spec.Child("schedule")
	switch {
	case schedule == "":
		errs = append(errs, field.Required(at, ""))
	case strings.Contains(schedule, "TZ"):
		errs = append(errs, field.Invalid(at, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
	default:
		if err := readSchedule(schedule); err != nil {
			errs = append(errs, field.Invalid(at, schedule, err.Error()))
		}
	}
	if zone == nil || *zone == "" {
		return errs
	}
	if strings.EqualFold(*zone, "Local") {
		return append(errs, field.Invalid(spec.Child("timeZone"), *zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"))
	}
	if _, err := time.LoadLocation(*zone); err != nil {
		text := err.Error()
		if strings.Contains(text, "invalid location name") {
			text = "unknown time zone " + *zone
		}
		errs = append(errs, field.Invalid(spec.Child("timeZone"), *zone, text))
	}
	return errs
}

// cronField is one of the five parts of a schedule.
type cronField struct {
	least, most int
	names       []string // of the numbers from least on
}

var cronFields = []cronField{
	{0, 59, nil}, {0, 23, nil}, {1, 31, nil},
	{1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

var cronWords = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

// readSchedule says what is wrong with a schedule, in the words of cron.
func readSchedule(schedule string) error {
	if strings.HasPrefix(schedule, "@") {
		if slices.Contains(cronWords, schedule) {
			return nil
		}
		every, ok := strings.CutPrefix(schedule, "@every ")
		if !ok {
			return fmt.Errorf("unrecognized descriptor: %s", schedule)
		}
		if _, err := time.ParseDuration(every); err != nil {
			return fmt.Errorf("failed to parse duration %s: %w", schedule, err)
		}
		return nil
	}
	parts := strings.Fields(schedule)
	if len(parts) != len(cronFields) {
		return fmt.Errorf("expected exactly %d fields, found %d: %v", len(cronFields), len(parts), parts)
	}
	for i, part := range parts {
		for _, span := range strings.Split(part, ",") {
			if err := cronFields[i].read(span); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads one range of a field: "*", "1", "1-5", each with a step as "/2".
func (f cronField) read(span string) (err error) {
	limits, step, stepped := strings.Cut(span, "/")
	if strings.Contains(step, "/") {
		return fmt.Errorf("too many slashes: %s", span)
	}
	low, high, ranged := strings.Cut(limits, "-")
	first, last := f.least, f.most
	switch {
	case low == "*" || low == "?":
		if ranged {
			return fmt.Errorf("too many hyphens: %s", span)
		}
	default:
		if first, err = f.number(low); err != nil {
			return err
		}
		if last = first; stepped {
			last = f.most
		}
		if strings.Contains(high, "-") {
			return fmt.Errorf("too many hyphens: %s", span)
		}
		if ranged {
			if last, err = f.number(high); err != nil {
				return err
			}
		}
	}
	by := 1
	if stepped {
		if by, err = cronNumber(step); err != nil {
			return err
		}
	}
	switch {
	case first < f.least:
		return fmt.Errorf("beginning of range (%d) below minimum (%d): %s", first, f.least, span)
	case last > f.most:
		return fmt.Errorf("end of range (%d) above maximum (%d): %s", last, f.most, span)
	case first > last:
		return fmt.Errorf("beginning of range (%d) beyond end of range (%d): %s", first, last, span)
	case by == 0:
		return fmt.Errorf("step of range should be a positive number: %s", span)
	}
	return nil
}

// number is a number of the field, or the one that a name stands for.
func (f cronField) number(text string) (int, error) {
	if i := slices.Index(f.names, strings.ToLower(text)); i >= 0 {
		return f.least + i, nil
	}
	return cronNumber(text)
}

func cronNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("failed to parse int from %s: %w", text, err)
	}
	if n < 0 {
		return 0, fmt.Errorf("negative number (%d) not allowed: %s", n, text)
	}
	return n, nil
}
