// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/resource/builtin"
)

// story is what happens.
type story struct {
	replicas, objects int
	pause             time.Duration
	out               io.Writer
}

// cast are the parts of a story on one server.
type cast struct {
	story
	*observer
	client     *client.Client
	kubeconfig string
	processes  map[string]*process
	table      string    // what was printed last
	at         time.Time // and when
}

func (s story) run(ctx context.Context, cfg *rest.Config, kubeconfig string) (err error) {
	scheme := runtime.NewScheme()
	if err := builtin.AddToScheme(scheme); err != nil {
		return err
	}
	c := &cast{story: s, kubeconfig: kubeconfig, processes: map[string]*process{}}
	if c.client, err = client.New(cfg, scheme, client.Options{}); err != nil {
		return err
	}
	if c.observer, err = observe(cfg, scheme); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop(nil)
	work.Go(func() { stop(c.Run(ctx)) })
	defer func() { err = errors.Join(err, c.stopAll()) }()
	if _, err := c.WaitForSync(ctx); err != nil {
		return err
	}
	return c.play(ctx)
}

// play is the story itself.
func (c *cast) play(ctx context.Context) error {
	c.say("%d objects in %d shards, shared by %d processes; Leases last %s.", c.objects, shardCount, c.replicas, leaseDuration)
	if err := c.createObjects(ctx); err != nil {
		return err
	}
	for i := range c.replicas {
		if err := c.begin(fmt.Sprint("replica-", i+1)); err != nil {
			return err
		}
	}
	if err := c.shared(ctx); err != nil {
		return err
	}
	editing, done := context.WithCancel(ctx)
	var editor sync.WaitGroup
	defer editor.Wait()
	defer done()
	editor.Go(func() { c.edit(editing) })

	const second = "replica-2"
	for _, step := range []func(context.Context) error{
		c.wait,
		func(ctx context.Context) error { return c.killOne(ctx, second) },
		c.wait,
		func(ctx context.Context) error { return c.startAgain(ctx, second) },
		c.wait,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	done()
	editor.Wait()
	if err := c.until(ctx, func(_ map[string]holding, waiting int) bool { return waiting == 0 }); err != nil {
		return err
	}
	return c.check()
}

func (c *cast) killOne(ctx context.Context, name string) error {
	before, _ := c.holdings()
	killed := time.Now()
	c.say("kill -9 %s, which holds %s.", name, numbers(before[name].shards))
	if err := c.processes[name].kill(); err != nil {
		return err
	}
	delete(c.processes, name)
	if err := c.shared(ctx); err != nil {
		return err
	}
	now, _ := c.holdings()
	c.say("%.1fs after the kill its %d shards are held again, %s.", time.Since(killed).Seconds(), len(before[name].shards), c.moves(before, now))
	return nil
}

func (c *cast) startAgain(ctx context.Context, name string) error {
	before, _ := c.holdings()
	c.say("Start %s again.", name)
	if err := c.begin(name); err != nil {
		return err
	}
	if err := c.shared(ctx); err != nil {
		return err
	}
	now, _ := c.holdings()
	c.say("Of %d shards %d have moved, %s.", shardCount, count(moved(before, now)), c.moves(before, now))
	return nil
}

// check compares each write with who held the object's shard then.
func (c *cast) check() error {
	wrong, all := c.history.Check()
	if len(wrong) > 0 {
		return fmt.Errorf("%d of %d writes were made by a process that did not hold the shard:\n%s", len(wrong), all, strings.Join(wrong, "\n"))
	}
	c.say("Each of %d writes was made by the process that held the object's shard at that moment.", all)
	return nil
}

func (c *cast) begin(name string) error {
	p, err := start(name, c.kubeconfig)
	if err == nil {
		c.processes[name] = p
	}
	return err
}

// stopAll stops all processes, and waits for their ends.
func (c *cast) stopAll() error {
	var problems []error
	for _, p := range c.processes {
		p.askToStop()
	}
	for _, p := range c.processes {
		problems = append(problems, p.wait())
	}
	return errors.Join(problems...)
}

func object(i, value int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("object-", i)},
		Data:       map[string]string{"value": fmt.Sprint(value)},
	}
}

func (c *cast) createObjects(ctx context.Context) error {
	for i := range c.objects {
		if err := c.client.Create(ctx, object(i, 0)); err != nil {
			return err
		}
	}
	return nil
}

// edit gives objects new values, which the processes have to see, until ctx ends.
func (c *cast) edit(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for value := 1; ; value++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// An edit that fails is one edit less.
		_ = c.client.Apply(ctx, object(rand.IntN(c.objects), value), client.FieldOwner("user"), client.Force{})
	}
}

// wait waits for the pause of the story.
func (c *cast) wait(ctx context.Context) error {
	end := time.Now().Add(c.pause)
	return c.until(ctx, func(map[string]holding, int) bool { return time.Now().After(end) })
}

// shared waits until exactly the processes that run hold all shards, evenly.
func (c *cast) shared(ctx context.Context) error {
	return c.until(ctx, func(by map[string]holding, _ int) bool {
		few, many := shardCount, 0
		for name := range c.processes {
			few, many = min(few, len(by[name].shards)), max(many, len(by[name].shards))
		}
		return slices.Equal(slices.Sorted(maps.Keys(by)), slices.Sorted(maps.Keys(c.processes))) && many-few <= 1
	})
}

// until returns when something is so, and prints the table when it has changed, at most once a
// second.
func (c *cast) until(ctx context.Context, is func(by map[string]holding, waiting int) bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		by, waiting := c.holdings()
		is := is(by, waiting)
		c.print(by, is)
		if is {
			return nil
		}
		for _, p := range c.processes {
			if err := p.lost(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// print prints the table if it has changed.
func (c *cast) print(by map[string]holding, now bool) {
	var out strings.Builder
	for i := range c.replicas {
		name := fmt.Sprint("replica-", i+1)
		state := ""
		if c.processes[name] == nil {
			state = " (killed)"
		}
		out.WriteString(by[name].line(name + state))
	}
	if none := by[""]; len(none.shards) > 0 {
		out.WriteString(none.line("nobody"))
	}
	if out.String() == c.table || !now && time.Since(c.at) < time.Second {
		return
	}
	c.table, c.at = out.String(), time.Now()
	fmt.Fprintf(c.out, "%s\n%s", c.at.Format(time.TimeOnly), c.table)
}

// line is a line of the table.
func (h holding) line(name string) string {
	text := fmt.Sprintf("  %-18s %3d objects, %2d shards %s", name, h.objects, len(h.shards), numbers(h.shards))
	return strings.TrimRight(text, " ") + "\n"
}

// moves names who has taken shards.
func (c *cast) moves(before, now map[string]holding) string {
	all := moved(before, now)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, fmt.Sprintf("%s by %s", numbers(all[name]), name))
	}
	return strings.Join(out, "; ")
}

func (c *cast) say(format string, args ...any) {
	fmt.Fprintf(c.out, "\n"+format+"\n", args...)
}

func count(all map[string][]int) (n int) {
	for _, some := range all {
		n += len(some)
	}
	return n
}

// numbers prints shards, adjacent ones as a range.
func numbers(some []int) string {
	var out []string
	for i := 0; i < len(some); i++ {
		first := some[i]
		for i+1 < len(some) && some[i+1] == some[i]+1 {
			i++
		}
		if first == some[i] {
			out = append(out, fmt.Sprint(first))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", first, some[i]))
		}
	}
	return strings.Join(out, " ")
}
