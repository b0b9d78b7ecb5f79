// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/internal/jsonspan"
)

// ofItem is the estimated memory of an item that is not yet decoded.
const ofItem = 512

// Page is one page of a list. Its objects are decoded separately, so that one that
// cannot be decoded does not affect the others.
type Page struct {
	Items []Answer
	Token string // of the next page; empty: this is the last
}

// Page splits the answer to a list into items.
func (a Answer) Page() (Page, error) {
	if a.Protobuf {
		return a.protobufPage()
	}
	var metadata, items []byte
	err := jsonspan.EachMember(a.Data, func(key []byte, start, end int) bool {
		switch string(key) {
		case "metadata":
			metadata = a.Data[start:end]
		case "items":
			items = a.Data[start:end]
		}
		return true
	})
	var meta metav1.ListMeta
	if err == nil && metadata != nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(metadata, &meta)
	}
	if err != nil {
		return Page{}, fmt.Errorf("read the list: %w", err)
	}
	page := Page{Token: meta.Continue}
	if items == nil {
		return page, nil
	}
	// Items are counted before memory is allocated for them.
	count, budget := 0, decodelimit.Budget{Limit: decodelimit.Page}
	err = jsonspan.EachElement(items, func([]byte) error {
		count++
		return tooHeavy(budget.Charge(ofItem))
	})
	if err == nil {
		page.Items = make([]Answer, 0, count)
		err = jsonspan.EachElement(items, func(raw []byte) error {
			page.Items = append(page.Items, Answer{Data: raw, Discreet: a.Discreet})
			return nil
		})
	}
	if err != nil {
		return Page{}, fmt.Errorf("read the list: %w", err)
	}
	return page, nil
}

// protobufPage splits the wire format: in every list of the API field 1 is the metadata
// and field 2 the items.
func (a Answer) protobufPage() (Page, error) {
	var page Page
	budget := decodelimit.Budget{Limit: decodelimit.Page}
	for rest := a.Data; len(rest) > 0; {
		number, wire, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return page, fmt.Errorf("read the list: %w", protowire.ParseError(n))
		}
		rest = rest[n:]
		if wire != protowire.BytesType || number > 2 {
			if n = protowire.ConsumeFieldValue(number, wire, rest); n < 0 {
				return page, fmt.Errorf("read the list: %w", protowire.ParseError(n))
			}
			rest = rest[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(rest)
		if n < 0 {
			return page, fmt.Errorf("read the list: %w", protowire.ParseError(n))
		}
		rest = rest[n:]
		if number == 2 {
			if err := budget.Charge(ofItem); err != nil {
				return Page{}, tooHeavy(err)
			}
			page.Items = append(page.Items, Answer{Data: value, Protobuf: true, Discreet: a.Discreet})
			continue
		}
		var metadata metav1.ListMeta
		if err := metadata.Unmarshal(value); err != nil {
			return page, fmt.Errorf("read the list: %w", err)
		}
		page.Token = metadata.Continue
	}
	return page, nil
}

// Metadata reads the metadata of an object that is invalid JSON elsewhere.
func (a Answer) Metadata() (meta metav1.ObjectMeta) {
	_ = jsonspan.EachMember(a.Data, func(key []byte, start, end int) bool {
		if string(key) != "metadata" {
			return true
		}
		part := Answer{Data: a.Data[start:end]}
		if part.Decode(&meta) != nil {
			meta = metav1.ObjectMeta{}
		}
		return false
	})
	return meta
}
