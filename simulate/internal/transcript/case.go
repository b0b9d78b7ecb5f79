// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"fmt"
	"strings"
)

// Case is a sequence of requests that begins in an empty namespace.
type Case struct {
	// Name is the area and the case's own name: "list/limit".
	Name  string
	Steps []Step
}

// Step is one line of a case with the lines that belong to it.
type Step struct {
	// Line is the number of its line in the file, from 1.
	Line int
	// Verb is a method in capitals, or a word of the runner.
	Verb string
	// Rest of the line, before variables are expanded.
	Rest string
	// Options are the lines that begin with @: headers of the request with their capitals,
	// and words for the runner in lower case.
	Options []Option
	// Body of the request, before variables are expanded.
	Body string
}

// Option is one line @Name: value.
type Option struct{ Name, Value string }

// option returns the value of the first option of that name; empty: none.
func (s Step) option(name string) string {
	for _, o := range s.Options {
		if o.Name == name {
			return o.Value
		}
	}
	return ""
}

// isRequest reports whether the server answers s at once.
func (s Step) isRequest() bool { return s.Verb == strings.ToUpper(s.Verb) }

// String returns the step as golden files show it: its line without its body.
func (s Step) String() string {
	parts := []string{s.Verb, s.Rest}
	for _, o := range s.Options {
		if o.Name == strings.ToLower(o.Name) {
			continue
		}
		parts = append(parts, "@"+o.Name+": "+o.Value)
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// words of the runner, with the number of arguments that each requires.
var words = map[string]int{"watch": 2, "await": 2, "save": 2, "set": 2, "use": 1, "poll": 2}

// Parse parses the cases of one area. A case begins with a line "-- name --"; the package
// comment describes the rest.
func Parse(area, text string) ([]Case, error) {
	var cases []Case
	p := stepParser{}
	for i, line := range strings.Split(text+"\n", "\n") {
		if name, ok := strings.CutPrefix(line, "-- "); ok {
			name = strings.TrimSpace(strings.TrimSuffix(name, "--"))
			cases = append(cases, Case{Name: area + "/" + name})
			p = stepParser{}
			continue
		}
		step, done, err := p.line(i+1, line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("parse %s.txt: line %d: %w", area, i+1, err)
		case done && len(cases) == 0:
			return nil, fmt.Errorf("parse %s.txt: line %d: a step before the first case; begin one with -- name --", area, i+1)
		case done:
			last := &cases[len(cases)-1]
			last.Steps = append(last.Steps, step)
		}
	}
	return cases, nil
}

// stepParser collects the lines of one step.
type stepParser struct {
	step Step
	open bool
	body []string
}

// line adds the next line, and returns a step if the line completes one.
func (p *stepParser) line(number int, line string) (step Step, done bool, err error) {
	switch {
	case strings.TrimSpace(line) == "":
		if !p.open {
			return step, false, nil
		}
		step = p.step
		step.Body = strings.Join(p.body, "\n")
		*p = stepParser{}
		return step, true, nil
	case p.open && len(p.body) == 0 && strings.HasPrefix(line, "@"):
		name, value, ok := strings.Cut(line[1:], ":")
		if !ok {
			return step, false, fmt.Errorf("%q has no colon; an option is @Name: value", line)
		}
		p.step.Options = append(p.step.Options, Option{name, strings.TrimSpace(value)})
	case p.open:
		p.body = append(p.body, line)
	case strings.HasPrefix(line, "#"):
	default:
		p.step, err = parseStep(line)
		p.step.Line, p.open = number, true
	}
	return step, false, err
}

// parseStep parses a step's first line.
func parseStep(line string) (Step, error) {
	verb, rest, _ := strings.Cut(line, " ")
	step := Step{Verb: verb, Rest: strings.TrimSpace(rest)}
	needs, known := words[verb]
	switch {
	case !known && !step.isRequest():
		return step, fmt.Errorf("%q is neither a method nor a word of the runner", verb)
	case step.isRequest() && !strings.HasPrefix(step.Rest, "/") && !strings.HasPrefix(step.Rest, "$"):
		return step, fmt.Errorf("%s needs a path, not %q", verb, step.Rest)
	case len(strings.Fields(step.Rest)) < needs:
		return step, fmt.Errorf("%s needs %d words, not %q", verb, needs, step.Rest)
	}
	return step, nil
}
