// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
)

// BrokenCases returns the cases with a body, broken. It omits bodies that are invalid
// already.
func BrokenCases(cases []Case) (out []Case) {
	for _, c := range cases {
		if bad, ok := broken(c); ok && !strings.HasPrefix(c.Name, "badinput/") {
			out = append(out, bad)
		}
	}
	return out
}

// broken returns c with a dry run before each request that has a body, whose body is
// broken: truncated, or with one byte changed. Only the dry runs are recorded, with status,
// reason and message. The damage depends only on the name of c and the step. It returns
// false if c has no such request.
func broken(c Case) (Case, bool) {
	out := Case{Name: "broken/" + c.Name}
	found := false
	for i, step := range c.Steps {
		switch {
		case step.Verb == "watch", step.Verb == "await":
			continue
		case step.Verb == "save":
			step.Rest += " 1"
		case step.isRequest():
			if bad, ok := breakStep(step, c.Name+strconv.Itoa(i)); ok {
				out.Steps, found = append(out.Steps, bad), true
			}
			step.Options = append([]Option{{"quiet", "true"}}, step.Options...)
		}
		out.Steps = append(out.Steps, step)
	}
	return out, found
}

// breakStep returns the dry run of a step with a broken body.
func breakStep(step Step, seed string) (Step, bool) {
	path, inline, _ := strings.Cut(step.Rest, " ")
	silent := step.option("silent") != ""
	if step.Body+inline == "" || silent || strings.Contains(step.Body+inline, "$(") || strings.HasPrefix(step.Body, "hex ") {
		return step, false
	}
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	step.Rest = strings.TrimSpace(path + separator + "dryRun=All " + inline)
	hash := fnv.New64a()
	hash.Write([]byte(seed))
	step.Options = append([]Option{{"break", strconv.FormatUint(hash.Sum64(), 10)}}, step.Options...)
	return step, true
}

// breakBody truncates body or changes one byte.
func breakBody(body []byte, seed string) []byte {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil || len(body) == 0 {
		return body
	}
	g := rand.New(rand.NewPCG(n, 0))
	at := g.IntN(len(body))
	if g.IntN(3) == 0 {
		return body[:at]
	}
	const others = `{}[]",:x0 -`
	out := append([]byte(nil), body...)
	out[at] = others[g.IntN(len(others))]
	return out
}
