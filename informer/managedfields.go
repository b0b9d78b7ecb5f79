// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

// KeepManagedFields has metadata.managedFields stay in the objects of this
// kind and representation, for code that reads them, whatever the Options say.
// They cost memory, for everyone who shares the informer. It is an error after
// the informer started without them. It is the kind's, and stays when this
// handle is released.
func (i *SharedInformer[T]) KeepManagedFields() error {
	if err := i.Err(); err != nil {
		return err
	}
	return i.core.keepManagedFields()
}

func (c *core) keepManagedFields() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.started && c.mu.opened && !c.mu.managed {
		return c.errorf("keep managedFields: the informer has started, and objects are stored without them already; ask before the run or on a handle whose Scope is Deferred, or set Options.KeepManagedFields")
	}
	c.mu.managed = true
	return nil
}

// keepsManagedFields stays the same once the run has begun.
func (c *core) keepsManagedFields() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.managed
}
