// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Report is the result of an examination.
type Report struct {
	Test     string     `json:"test"`
	Findings []*Finding `json:"findings"`
	// Plans is how many plans there are, Ran how many were run within the budget, and Missed how many of those
	// never reached their fault. Circled is how many were ended because the program went round in circles
	// while it could not see what it does; they are not judged.
	Plans   int `json:"plans"`
	Ran     int `json:"ran"`
	Missed  int `json:"missed"`
	Circled int `json:"circled"`
	// Own is how many faults have hit a request of a suite's spec itself, or hidden how it cleans up. They are not judged.
	Own int `json:"own,omitempty"`
	// Patterns is how many plans of each pattern were run.
	Patterns map[Pattern]int `json:"patterns"`
	// Coverage is what the plans are about: writes, kinds that are read, fields.
	Coverage []Covered `json:"coverage"`
	// Skipped is what could not be judged, with the reason, Refused which changes the server did not accept, and Untried
	// for which walks of fields there was no time.
	Skipped []string `json:"skipped,omitempty"`
	Refused []string `json:"refused,omitempty"`
	Untried []string `json:"untried,omitempty"`
	// Prepared is how long the runs without faults took, and Took how long everything took.
	Prepared time.Duration `json:"prepared"`
	Took     time.Duration `json:"took"`
}

// summary is one paragraph about the coverage.
func (r *Report) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "doctor: %d findings; %d of %d plans run in %s (runs without faults: %s)", len(r.Findings), r.Ran, r.Plans, r.Took.Round(time.Millisecond), r.Prepared.Round(time.Millisecond))
	for _, p := range slices.Sorted(maps.Keys(r.Patterns)) {
		fmt.Fprintf(&b, ", %s: %d", p, r.Patterns[p])
	}
	fmt.Fprintf(&b, "; tried: %s", r.covered())
	if r.Missed > 0 {
		fmt.Fprintf(&b, "; %d never reached their fault", r.Missed)
	}
	if r.Circled > 0 {
		fmt.Fprintf(&b, "; %d were ended because the program went round in circles during the fault", r.Circled)
	}
	if r.Own > 0 {
		fmt.Fprintf(&b, "; %d hit a request of a spec itself, or hid its cleanup", r.Own)
	}
	if len(r.Refused) > 0 {
		fmt.Fprintf(&b, "; the server refuses %d changes of fields", len(r.Refused))
	}
	if len(r.Untried) > 0 {
		fmt.Fprintf(&b, "; there is no time for %d changes of fields", len(r.Untried))
	}
	for _, text := range r.Skipped {
		fmt.Fprintf(&b, "\nnot judged: %s", text)
	}
	return b.String()
}

//go:embed report.html
var page string

// write writes the report into a directory.
func (r *Report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	sarif, err := json.MarshalIndent(r.sarif(), "", "  ")
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"doctor.json": text, "doctor.sarif": sarif} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	shown, err := template.New("report").Funcs(template.FuncMap{"base": filepath.Base, "join": strings.Join, "repeated": (*Finding).repeated}).Parse(page)
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(dir, "doctor.html"))
	if err != nil {
		return err
	}
	err = shown.Execute(file, r)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// sarif returns the report in the Static Analysis Results Interchange Format, version 2.1.0, which code reviews
// show.
func (r *Report) sarif() any {
	type fields = map[string]any
	var results []fields
	rules := map[string]fields{}
	for _, f := range r.Findings {
		rule := strings.ReplaceAll(string(f.Class), " ", "-")
		rules[rule] = fields{"id": rule, "name": string(f.Class)}
		result := fields{
			"ruleId": rule, "level": "error", "message": fields{"text": f.Text + "\n" + f.Plan + "\n" + f.Advice},
			"partialFingerprints": fields{"doctor/v1": f.ID},
		}
		if f.Known {
			result["level"] = "note"
		}
		if file, line, ok := placeOf(f.Line); ok {
			result["locations"] = []fields{{"physicalLocation": fields{"artifactLocation": fields{"uri": file}, "region": fields{"startLine": line}}}}
		}
		results = append(results, result)
	}
	if results == nil {
		results = []fields{}
	}
	var list []fields
	for _, id := range slices.Sorted(maps.Keys(rules)) {
		list = append(list, rules[id])
	}
	return fields{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []fields{{"tool": fields{"driver": fields{"name": "flyball doctor", "rules": list}}, "results": results}},
	}
}

// placeOf returns the file and the line of a line's text.
func placeOf(text string) (file string, line int, ok bool) {
	place, _, _ := strings.Cut(text, " ")
	file, number, found := strings.Cut(place, ":")
	line, err := strconv.Atoi(number)
	return file, line, found && err == nil
}

// covered says in a few words how much was tried at least once.
func (r *Report) covered() string {
	var parts []string
	for _, sort := range []struct{ prefix, name string }{{"write ", "writes"}, {"read ", "kinds read"}, {"field ", "changes of fields"}} {
		all, tried := 0, 0
		for _, c := range r.Coverage {
			if strings.HasPrefix(c.What, sort.prefix) {
				all++
				tried += min(c.Ran, 1)
			}
		}
		parts = append(parts, fmt.Sprintf("%d of %d %s", tried, all, sort.name))
	}
	return strings.Join(parts, ", ")
}
