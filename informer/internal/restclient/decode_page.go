// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/internal/jsonspan"
	"github.com/flyball-dev/flyball/kube"
)

// pageReader decodes the items of a page one by one as they arrive.
type pageReader struct {
	d    *Decoder
	in   *encoding.Window
	page listwatch.Page[kube.Object]
	// each takes each item while its Raw is valid, and returns what the page
	// holds; nil: the item.
	each   func(listwatch.Item[kube.Object]) listwatch.Item[kube.Object]
	budget decodelimit.Budget
	whole  bool // the budget grows with the bytes that arrive

	named     bool // a JSON list of another name: its items must have their kind
	unnamed   bool // the list's name is not known yet
	strangers bool // an item is of another kind
	kindless  bool // an item has no kind
	refused   bool // a list of another kind
}

// Page decodes one page of a list, each item as soon as it has arrived. The
// objects do not share memory with the source. each takes each item while its
// Raw is valid, and returns what the page holds; nil: the item. whole: the list
// has no pages, so what decoding may allocate grows with its bytes. An error of
// the source is an *encoding.ReadError, the Status in the answer an
// *apierrors.StatusError. shown is what an error may show of the answer.
func (d *Decoder) Page(media string, in *encoding.Window, whole bool, each func(listwatch.Item[kube.Object]) listwatch.Item[kube.Object]) (page listwatch.Page[kube.Object], shown []byte, err error) {
	r := &pageReader{d: d, in: in, each: each, whole: whole, budget: decodelimit.Budget{Limit: decodelimit.Page}}
	switch media {
	case ContentProtobuf:
		shown, err = r.protobuf()
	case ContentJSON:
		shown, err = r.json()
	default:
		if shown, err = in.All(); err == nil {
			err = errors.New("neither JSON nor protobuf of Kubernetes")
		}
	}
	if err != nil {
		return listwatch.Page[kube.Object]{}, shown, err
	}
	return r.page, shown, nil
}

func (r *pageReader) protobuf() (shown []byte, err error) {
	d := r.d
	begin := func(apiVersion, kind string) bool {
		r.page = listwatch.Page[kube.Object]{}
		return d.isList(apiVersion, kind)
	}
	list, err := encoding.ReadProtobufList(r.in, encoding.ListReader{Begin: begin, Item: func(raw []byte) error {
		if r.drops(raw, true) {
			return nil
		}
		return r.add(d.protobufItem(raw, r.ration()))
	}})
	switch {
	case err != nil:
		return nil, err
	case list.Whole != nil:
		return list.Whole, r.wholeProtobuf(list.Whole)
	case !d.isList(list.APIVersion, list.Kind):
		return nil, d.notAList(list.APIVersion, list.Kind, nil)
	}
	r.ends(&list.Meta)
	return nil, nil
}

// wholeProtobuf decodes a message that does not begin as a list.
func (r *pageReader) wholeProtobuf(body []byte) error {
	d := r.d
	e, err := encoding.OpenEnvelope(body)
	if err != nil {
		return err
	}
	if !d.isList(string(e.APIVersion), string(e.Kind)) {
		return d.notAList(string(e.APIVersion), string(e.Kind), body)
	}
	meta, err := encoding.SplitProtobufList(e.Raw, func(raw []byte) error {
		if r.drops(raw, true) {
			return nil
		}
		return r.add(d.protobufItem(raw, r.ration()))
	})
	r.ends(&meta)
	return err
}

func (r *pageReader) json() (outside []byte, err error) {
	d := r.d
	begin := func(apiVersion, kind string) bool {
		r.page, r.strangers, r.kindless = listwatch.Page[kube.Object]{}, false, false
		r.unnamed = kind == ""
		r.named = !r.unnamed && !d.isList(apiVersion, kind)
		r.refused = !d.mayBeList(apiVersion, kind)
		return true
	}
	outside, err = encoding.ReadJSONList(r.in, encoding.ListReader{Begin: begin, Item: func(raw []byte) error {
		if r.refused || r.drops(raw, false) {
			return nil
		}
		return r.add(r.jsonItem(raw))
	}})
	if err != nil {
		return outside, err
	}
	list, err := encoding.SplitJSONList(outside)
	if err != nil {
		return outside, err
	}
	apiVersion, kind := string(list.APIVersion), string(list.Kind)
	if list.Items == nil || r.refused || !d.mayBeList(apiVersion, kind) {
		return outside, d.notAList(apiVersion, kind, outside)
	}
	var meta metav1.ListMeta
	if len(list.Metadata) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(list.Metadata, &meta); err != nil {
			return outside, fmt.Errorf("read list metadata: %w", err)
		}
	}
	if err := jsonspan.EachElement(list.Items, func([]byte) error { return nil }); err != nil {
		return outside, err // the items are no array
	}
	// A list whose items lack their kind must itself be of the kind.
	if (r.strangers || r.kindless) && !d.isList(apiVersion, kind) {
		return outside, d.notAList(apiVersion, kind, outside)
	}
	r.ends(&meta)
	return outside, nil
}

// ends completes the page with the metadata of its list.
func (r *pageReader) ends(meta *metav1.ListMeta) {
	r.page.ResourceVersion, r.page.Continue = meta.ResourceVersion, meta.Continue
	if meta.ShardInfo != nil {
		r.page.ShardSelector = meta.ShardInfo.Selector
	}
	if meta.RemainingItemCount != nil {
		r.page.Remaining = max(*meta.RemainingItemCount, 0)
	}
}

// jsonItem decodes an item of a JSON list. The lists of custom kinds have their
// kind after their items, so whether an item may lack its kind is then decided
// at the end.
func (r *pageReader) jsonItem(raw []byte) listwatch.Item[kube.Object] {
	d := r.d
	if r.unnamed && !d.kept.ManagedFields {
		raw = encoding.CutManagedFields(raw) // now, so that decoding leaves raw as it is
	}
	item := d.jsonItem(raw, r.named || r.unnamed, r.ration())
	if r.unnamed && item.Anomaly == base.OtherKind {
		if _, kind := encoding.JSONKind(raw); kind == "" {
			item, r.kindless = d.jsonItem(raw, false, r.ration()), true
		}
	}
	r.strangers = r.strangers || item.Anomaly != base.Sound
	if IsUnreadable(item) {
		if id := encoding.GarbledIdentity(raw); id.Name != "" {
			return broken(id, item.Err, nil)
		}
	}
	return item
}

// ration returns the budget for the next item.
func (r *pageReader) ration() *decodelimit.Budget {
	if r.whole {
		r.budget.Limit = max(r.budget.Limit, decodelimit.Whole(r.in.Size()))
	}
	return &r.budget
}

// ofItem is the memory overhead per object until it is stored.
const ofItem = 512

// add adds item to the page, or counts it if it has no key. It returns an error
// if the page becomes too large.
func (r *pageReader) add(item listwatch.Item[kube.Object]) error {
	if err := encoding.TooHeavy(r.budget.Charge(ofItem)); err != nil {
		return err
	}
	if heavy, ok := errors.AsType[*kube.TooLargeError](item.Err); ok && heavy.Limit == r.budget.Limit {
		return heavy
	}
	p := &r.page
	if IsUnreadable(item) {
		p.Unreadable++
		if p.UnreadableErr == nil {
			p.UnreadableErr = item.Err
		}
		return nil
	}
	if r.each != nil {
		item = r.each(item)
	}
	item.Raw = nil // it is valid only until the next item is read
	p.Items = append(p.Items, item)
	return nil
}
