// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// buckets is the part of a Store outside the cluster.
type buckets interface {
	// create creates a bucket and returns its ID. Unless anew is set, it returns an
	// existing bucket with the token.
	create(ctx context.Context, token string, anew bool) (string, error)
	// free deletes the buckets of a token, or the one with an ID. A missing bucket is
	// not an error.
	free(ctx context.Context, token, id string) error
}

// cloud has buckets in memory. It outlives the processes, and sometimes fails.
type cloud struct {
	fails func(token string) bool
	mu    struct {
		sync.Mutex
		made    int
		buckets map[string]string // their owners' tokens, by ID
	}
}

func newCloud(fails func(token string) bool) *cloud {
	c := &cloud{fails: fails}
	c.mu.buckets = map[string]string{}
	return c
}

var errCloud = errors.New("the cloud is busy")

func (c *cloud) create(ctx context.Context, token string, anew bool) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if c.fails(token) {
		return "", errCloud
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, of := range c.mu.buckets {
		if of == token && !anew {
			return id, nil
		}
	}
	c.mu.made++
	id := fmt.Sprint("bucket-", c.mu.made)
	c.mu.buckets[id] = token
	return id, nil
}

func (c *cloud) free(ctx context.Context, token, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.fails(token) {
		return errCloud
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.buckets, id)
	for id, of := range c.mu.buckets {
		if of == token {
			delete(c.mu.buckets, id)
		}
	}
	return nil
}

func (c *cloud) held() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]string{}
	for id, of := range c.mu.buckets {
		out[id] = of
	}
	return out
}
