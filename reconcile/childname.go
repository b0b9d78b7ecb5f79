// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ChildName returns the name of a child of parent: ChildName("blog", "config") is
// "blog-config", and ChildName("blog", "shard", "0") is "blog-shard--0". The result is
// always a DNS subdomain of at most 253 characters, the name that most kinds require.
//
// Different arguments give different names, within the strength of 100 bits of SHA-256.
// A name that would be too long or invalid is cut and ends in such a hash of all
// arguments. So does a name that other arguments could give too, because a part has a
// hyphen or looks like a hash: ChildName("a-b", "c") is "a-b-c", and ChildName("a",
// "b-c") is "a-b-c-" with a hash. Hyphens in parent are fine. The same arguments give
// the same name in every version.
func ChildName(parent, part string, more ...string) string {
	return childName(subdomainRule, parent, part, more)
}

// ChildDNSLabel is ChildName for kinds whose names are DNS labels, such as Services and
// Namespaces, and for names used as a hostname or a label's value. It returns at most
// 63 characters, begins with a letter, and replaces dots with hyphens.
func ChildDNSLabel(parent, part string, more ...string) string {
	return childName(dnsLabelRule, parent, part, more)
}

// LabelValue returns text as the value of a label, such as the name of an owner: text
// itself if it is valid, as names of up to 63 characters are, or else the valid part of
// it, an underscore and a hash. Different texts give different values, as with
// ChildName.
func LabelValue(text string) string {
	r := labelValueRule
	if at := strings.LastIndexByte(text, r.mark); r.valid(text) && !(at >= 0 && looksLikeHash(text[at+1:])) {
		return text
	}
	return r.cut(text, text)
}

// nameRule describes the valid names of a kind of name.
type nameRule struct {
	limit   int
	problem func(string) []string
	also    string // valid besides lower-case letters, digits and hyphens
	letter  bool   // the first character must be one
	mark    byte   // before the hash
}

var (
	subdomainRule  = nameRule{limit: validation.DNS1123SubdomainMaxLength, problem: validation.IsDNS1123Subdomain, also: ".", mark: '-'}
	dnsLabelRule   = nameRule{limit: validation.DNS1035LabelMaxLength, problem: validation.IsDNS1035Label, letter: true, mark: '-'}
	labelValueRule = nameRule{limit: validation.LabelValueMaxLength, problem: validation.IsValidLabelValue, also: "._ABCDEFGHIJKLMNOPQRSTUVWXYZ", mark: '_'}
)

func (r nameRule) valid(name string) bool { return len(name) <= r.limit && len(r.problem(name)) == 0 }

// childName joins parent and parts. It returns the plain join if that is unambiguous:
// read from its end, parts have no hyphen, two hyphens separate parts and one the
// parent, and the last part is not a hash.
func childName(r nameRule, parent, part string, more []string) string {
	plain := parent != "" && !strings.HasSuffix(parent, "-")
	name, whole := parent+"-"+part, lengthFirst(parent)+lengthFirst(part)
	last := part
	plain = plain && isPart(part)
	for _, p := range more {
		name, whole, last = name+"--"+p, whole+lengthFirst(p), p
		plain = plain && isPart(p)
	}
	if plain && !looksLikeHash(last) && r.valid(name) {
		return name
	}
	return r.cut(name, whole)
}

func isPart(text string) bool { return text != "" && !strings.Contains(text, "-") }

// lengthFirst prefixes text with its length, so that concatenations are unambiguous.
func lengthFirst(text string) string { return strconv.Itoa(len(text)) + ":" + text }

// cut returns the valid part of name that fits, and the hash of whole.
func (r nameRule) cut(name, whole string) string {
	room := r.limit - hashLength - 1
	out := make([]byte, 0, r.limit)
	for i := 0; i < len(name) && len(out) < room; i++ {
		c := name[i]
		if c >= 'A' && c <= 'Z' && !strings.ContainsRune(r.also, rune(c)) {
			c += 'a' - 'A'
		}
		switch {
		case isAlphanumeric(c):
			if r.letter && len(out) == 0 && c <= '9' {
				out = append(out, 'x')
			}
		case c != '-' && strings.IndexByte(r.also, c) < 0:
			c = '-'
		}
		if isAlphanumeric(c) || len(out) > 0 && isAlphanumeric(out[len(out)-1]) {
			out = append(out, c)
		}
	}
	out = bytes.TrimRightFunc(out, func(c rune) bool { return !isAlphanumeric(byte(c)) })
	if len(out) == 0 {
		out = append(out, 'x')
	}
	return string(append(out, r.mark)) + hashOf(whole)
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// The hash is 100 bits in digits and letters, without most vowels, so that it does not
// form words.
const (
	hashLength   = 20
	hashAlphabet = "0123456789abcdfghjklmnpqrstvwxyz"
)

func hashOf(whole string) string {
	sum := sha256.Sum256([]byte(whole))
	return base32.NewEncoding(hashAlphabet).EncodeToString(sum[:])[:hashLength]
}

func looksLikeHash(text string) bool {
	return len(text) == hashLength && strings.Trim(text, hashAlphabet) == ""
}
