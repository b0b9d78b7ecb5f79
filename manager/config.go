// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	configFlag = "config"
	configSize = 1 << 20 // limit of the size of an options file, in bytes
)

// configFile is the flag -config: it sets the other flags of fs from a file. Flags that
// were set before on the command line or by an environment variable keep their values;
// later flags override the file.
type configFile struct {
	o  *Options
	fs *flag.FlagSet
}

func (c configFile) String() string {
	if c.o == nil {
		return ""
	}
	return c.o.config
}

// Set applies all settings of the file, or none.
func (c configFile) Set(name string) error {
	switch {
	case name == "":
		return errors.New("name a file, or leave -config out")
	case c.o.config != "":
		return fmt.Errorf("%s has been given by -config already; write one file", c.o.config)
	}
	text, err := readConfig(name)
	if err != nil {
		return err
	}
	settings, err := parseConfig(text)
	if err == nil {
		err = c.take(settings)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.o.config = name
	return nil
}

// readConfig reads the named file if it is not too large.
func readConfig(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w; name a YAML file of flags and their values", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, configSize+1))
	if err != nil {
		return nil, fmt.Errorf("%w; name a YAML file of flags and their values", err)
	}
	if len(text) > configSize {
		return nil, fmt.Errorf("%s is larger than %d KiB, and no file of flags and their values is", name, configSize>>10)
	}
	return text, nil
}

type setting struct {
	name  string
	line  int
	value *yaml.Node
}

// wrong adds the line, and the flag's usage if there is one, to err.
func (s setting) wrong(f *flag.Flag, err error) error {
	if f == nil {
		return fmt.Errorf("line %d: %s: %w", s.line, s.name, err)
	}
	_, usage := flag.UnquoteUsage(f)
	return fmt.Errorf("line %d: %s: %w (-%s: %s)", s.line, s.name, err, s.name, usage)
}

// textFor returns the value of s as a command-line argument for f.
func (s setting) textFor(f *flag.Flag) (string, error) {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	isBool := ok && b.IsBoolFlag()
	isList := slices.ContainsFunc(flags[:], func(row option) bool { return row.name == s.name && row.list })
	v := s.value
	switch {
	case v.Kind == yaml.AliasNode:
		return "", fmt.Errorf("*%s stands for another value; write the value", v.Value)
	case v.Tag == "!!null":
		return "", errors.New("it has no value; write one, or leave the line out")
	case v.Kind == yaml.SequenceNode && isList:
		return s.listText()
	case v.Kind != yaml.ScalarNode:
		return "", fmt.Errorf("this is %s; write one value", whatIs(v))
	case isBool && v.Tag != "!!bool":
		return "", fmt.Errorf("%q is %s; write true or false", v.Value, whatIs(v))
	case !isBool && v.Tag == "!!bool":
		return "", fmt.Errorf("%s is %s; write \"%[1]s\" if you mean the text", v.Value, whatIs(v))
	}
	return v.Value, nil
}

func (s setting) listText() (string, error) {
	var all []string
	for _, item := range s.value.Content {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" || item.Tag == "!!bool" {
			return "", fmt.Errorf("an item is %s; write text, in quotes if it looks like something else", whatIs(item))
		}
		if item.Value == "" || strings.ContainsAny(item.Value, ", ") {
			return "", fmt.Errorf("the item %q is not one name; write each name as a separate item", item.Value)
		}
		all = append(all, item.Value)
	}
	return strings.Join(all, ","), nil
}

// whatIs describes the kind of n.
func whatIs(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Tag == "!!bool":
		return "a truth value"
	case n.Tag == "!!null":
		return "nothing"
	case n.Tag == "!!int" || n.Tag == "!!float":
		return "a number"
	}
	return "text"
}

func parseConfig(text []byte) ([]setting, error) {
	const form = `write lines such as "metrics-bind-address: :8080"`
	documents := yaml.NewDecoder(strings.NewReader(string(text)))
	var document, second yaml.Node
	switch err := documents.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("it is empty; " + form)
	case err != nil:
		return nil, fmt.Errorf("%s; %s", strings.TrimPrefix(err.Error(), "yaml: "), form)
	}
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is a second document in it; write one, without ---")
	}
	root := document.Content[0]
	switch {
	case root.Kind == yaml.ScalarNode && root.Tag == "!!null", root.Kind == yaml.MappingNode && len(root.Content) == 0:
		return nil, errors.New("it sets nothing; " + form)
	case root.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("line %d: this is %s; %s", root.Line, whatIs(root), form)
	}
	var all []setting
	var failed []error
	first := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i]
		s := setting{name: key.Value, line: key.Line, value: root.Content[i+1]}
		switch before, twice := first[s.name]; {
		case key.Kind != yaml.ScalarNode || key.Value == "" || key.Tag == "!!merge":
			failed = append(failed, fmt.Errorf("line %d: this names no flag; %s", key.Line, form))
		case twice:
			failed = append(failed, s.wrong(nil, fmt.Errorf("it is already in line %d; remove one of the two", before)))
		}
		first[s.name] = s.line
		all = append(all, s)
	}
	return all, errors.Join(failed...)
}

// take sets the flags in settings: first those of the program, which are reset if one
// of them fails, then the fields of o together.
func (c configFile) take(settings []setting) error {
	trial, scratch := *c.o, *c.o
	var theirs []change
	var failed []error
	for _, s := range settings {
		f := c.fs.Lookup(s.name)
		if f == nil || s.name == configFlag {
			failed = append(failed, s.wrong(nil, errors.New("no flag of this name can be set by a file; -help lists those that can")))
			continue
		}
		text, err := s.textFor(f)
		own, isOwn := f.Value.(flagValue)
		switch stays := c.stays(f); {
		case err != nil:
		case !isOwn || own.o != c.o:
			if !stays {
				theirs = append(theirs, change{s, f, text})
			}
		case stays:
			err = own.row.set(&scratch, text)
		default:
			err = own.row.set(&trial, text)
		}
		if err != nil {
			failed = append(failed, s.wrong(f, err))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if err := setAll(theirs); err != nil {
		return err
	}
	*c.o = trial
	return nil
}

// stays reports whether f was set by the command line or a variable.
func (c configFile) stays(f *flag.Flag) bool {
	given := c.o.decided[f.Name]
	c.fs.Visit(func(g *flag.Flag) { given = given || g == f })
	return given
}

type change struct {
	setting
	flag *flag.Flag
	text string
}

// setAll makes all changes or, as far as the flags allow, none.
func setAll(changes []change) error {
	for i, c := range changes {
		changes[i].text = c.flag.Value.String()
		err := c.flag.Value.Set(c.text)
		if err == nil {
			continue
		}
		for _, made := range slices.Backward(changes[:i+1]) { // a rejected number sets the flag to 0
			_ = made.flag.Value.Set(made.text)
		}
		return c.wrong(c.flag, err)
	}
	return nil
}
