// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/internal/compact"
)

// Options configure New. The zero value is suitable for production.
type Options struct {
	// HotObjects is how many decoded objects an informer keeps for the next
	// read, least recently used first out. 0: 256.
	HotObjects int
	// HotBytes bounds them by the size of their encoded form; in memory they
	// take two to five times as much. 0: 1 MiB.
	HotBytes int64
	// DictionaryBytes is the size of the dictionary of a kind. 0: 112 KiB,
	// which fits objects of some kilobytes; larger objects gain from more. A
	// compact informer takes about 1 MiB besides its objects, and eight times
	// the size of the dictionary.
	DictionaryBytes int
	// WhenFull: the objects of informers that a factory has made are held decoded until they do
	// not fit into its informer.Options.MemoryBudget. Then kind by kind is packed, first what
	// takes most per read, and stays so. Without a budget nothing is packed.
	WhenFull bool
}

// New returns what makes informers compact, for informer.Options.Compact or the
// method Compact of an informer. Several informers may share it.
func New(opts Options) informer.Compact {
	return informer.Compact{
		Codec: codec{}, HotObjects: opts.HotObjects, HotBytes: opts.HotBytes, DictionaryBytes: opts.DictionaryBytes,
		WhenFull: opts.WhenFull,
	}
}

// codec is zstd with a dictionary of plain content. Trained tables for literals
// and sequences make no difference for objects of some kilobytes.
type codec struct{}

// dictionaryID of all dictionaries: an expander has only its own.
const dictionaryID = 1

// largestObject bounds what is expanded. A server has no object near it.
const largestObject = 256 << 20

func (codec) Compressor(dictionary []byte) (compact.Compressor, error) {
	opts := []zstd.EOption{
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithWindowSize(128 << 10),
	}
	if len(dictionary) > 0 {
		opts = append(opts, zstd.WithEncoderDictRaw(dictionaryID, dictionary))
	}
	e, err := zstd.NewWriter(nil, opts...)
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return compressor{e}, nil
}

func (codec) Expander(dictionary []byte) (compact.Expander, error) {
	opts := []zstd.DOption{zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(largestObject)}
	if len(dictionary) > 0 {
		opts = append(opts, zstd.WithDecoderDictRaw(dictionaryID, dictionary))
	}
	d, err := zstd.NewReader(nil, opts...)
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return expander{d}, nil
}

type compressor struct{ *zstd.Encoder }

func (c compressor) Compress(dst, object []byte) []byte { return c.EncodeAll(object, dst) }

type expander struct{ *zstd.Decoder }

func (e expander) Expand(dst, packed []byte) ([]byte, error) { return e.DecodeAll(packed, dst) }
