// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// normaliser replaces what differs between any two servers by common values.
type normaliser struct {
	own       *strings.Replacer // what the runner has chosen
	source    string            // what the case itself contains, which stays
	ranks     revisions         // of objects, in their order
	uids      map[string]string // in the order of their occurrence
	generated *strings.Replacer
}

// normalised returns what p recorded, with replacements: uids and the suffixes of generated
// names by their order, times, addresses, tokens and hashes by a word, revisions of objects
// by their rank, revisions of lists and bookmarks by that of the newest object they
// include, and the namespace by $ns. An entry of managedFields becomes one line.
func (p *player) normalised(c Case) []Entry {
	n := &normaliser{own: ownOf(p.vars), uids: map[string]string{}}
	var source strings.Builder
	for _, s := range c.Steps {
		fmt.Fprintln(&source, s.Rest, s.Body)
	}
	n.source = source.String()
	names := map[string]string{}
	for _, body := range p.seen {
		n.ranks.collect(body)
		collectGenerated(body, names)
	}
	n.generated = replacerOf(names)
	for i := range p.entries {
		e := &p.entries[i]
		for name, value := range e.Headers {
			e.Headers[name] = n.text(value)
		}
		e.Body = n.value("", e.Body)
		for j := range e.Frames {
			e.Frames[j] = n.value("", e.Frames[j])
		}
	}
	return p.entries
}

// collectGenerated maps generated names to their prefix and order.
func collectGenerated(value any, names map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		prefix, _ := v["generateName"].(string)
		name, _ := v["name"].(string)
		if prefix != "" && strings.HasPrefix(name, prefix) && names[name] == "" {
			names[name] = fmt.Sprintf("%s<%d>", prefix, len(names)+1)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			collectGenerated(v[key], names)
		}
	case []any:
		for _, item := range v {
			collectGenerated(item, names)
		}
	}
}

func replacerOf(names map[string]string) *strings.Replacer {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		pairs = append(pairs, name, names[name])
	}
	return strings.NewReplacer(pairs...)
}

// ownOf replaces the runner's values by the variables that hold them.
func ownOf(vars variables) *strings.Replacer {
	var pairs []string
	for _, name := range []string{"ns", "hooks", "trust"} {
		if vars[name] != "" {
			pairs = append(pairs, vars[name], "$"+name)
		}
	}
	return strings.NewReplacer(pairs...)
}

func (n *normaliser) value(key string, value any) any {
	switch v := value.(type) {
	case string:
		return n.leaf(key, v)
	case float64:
		if strings.HasSuffix(strings.ToLower(key), "nodeport") && v > 0 {
			return "<port>"
		}
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = n.value(key, item)
		}
		if key == "managedFields" || key == "causes" {
			slices.SortFunc(out, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		return out
	case map[string]any:
		if key == "managedFields" {
			return n.owned(v)
		}
		return n.object(v)
	}
	return value
}

func (n *normaliser) object(v map[string]any) any {
	out := map[string]any{}
	for _, path := range slices.Sorted(maps.Keys(v)) {
		key := path[strings.LastIndex(path, ".")+1:] // of the paths in @only
		if key == "resourceVersion" {
			out[path] = n.ranks.name(fmt.Sprint(v[path]))
			continue
		}
		out[n.text(path)] = n.value(key, v[path])
	}
	return out
}

// owned returns one manager's fields on one line.
func (n *normaliser) owned(v map[string]any) any {
	fields, err := json.Marshal(v["fieldsV1"])
	if err != nil {
		return v
	}
	line := fmt.Sprintf("%v %v %v %v", v["manager"], v["operation"], v["apiVersion"], v["subresource"])
	return n.text(strings.TrimSuffix(line, " <nil>") + " " + string(fields))
}

// leaf replaces a value, whose meaning may depend on its key.
func (n *normaliser) leaf(key, value string) any {
	switch {
	case value == "":
	case key == "continue":
		return n.ranks.token(value, n.text)
	case key == "message":
		return sortedList(n.text(value))
	case key == "storageVersionHash":
		return "<hash>"
	case key == "token" && strings.Count(value, ".") == 2:
		return "<token>"
	}
	return n.text(value)
}

// list matches the end of a message with several errors. Real servers list them in the
// order of a Go map.
var list = regexp.MustCompile(`(?s)\[(.*)\]$`)

func sortedList(message string) string {
	return list.ReplaceAllStringFunc(message, func(text string) string {
		parts := strings.Split(text[1:len(text)-1], ", ")
		slices.Sort(parts)
		return "[" + strings.Join(parts, ", ") + "]"
	})
}

var (
	uid     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)`)
	address = regexp.MustCompile(`\b10\.(0|96)\.\d{1,3}\.\d{1,3}\b`)
	hash    = regexp.MustCompile(`hash=[0-9A-Za-z%_-]+`)
	version = regexp.MustCompile(`(?i)(resource ?version[^0-9]{0,30}[^0-9-]|revision=)(\d+)`)
	current = regexp.MustCompile(`(resource version: )\d+(?:( \()\d+(\))|(, current: )\d+)`)
	age     = regexp.MustCompile(`^\d+(s|m|m\d+s)$`)
)

// text returns a string without what is specific to this server.
func (n *normaliser) text(text string) string {
	text = n.generated.Replace(text)
	text = uid.ReplaceAllStringFunc(text, func(id string) string {
		if strings.Contains(n.source, id) {
			return id
		}
		if n.uids[id] == "" {
			n.uids[id] = fmt.Sprintf("<uid %d>", len(n.uids)+1)
		}
		return n.uids[id]
	})
	text = instant.ReplaceAllStringFunc(text, func(t string) string {
		switch {
		case strings.Contains(n.source, t):
			return t
		case strings.Contains(t, "."):
			return "<microtime>"
		}
		return "<time>"
	})
	if text = current.ReplaceAllString(text, "${1}N$2${4}N$3"); !strings.Contains(text, "resource version: N") {
		text = version.ReplaceAllStringFunc(text, func(m string) string {
			parts := version.FindStringSubmatch(m)
			return parts[1] + n.ranks.name(parts[2])
		})
	}
	text = address.ReplaceAllString(text, "<address>")
	text = hash.ReplaceAllString(text, "hash=<hash>")
	text = age.ReplaceAllString(text, "<age>")
	return n.own.Replace(text)
}
