// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"
	"time"
)

// Verb names a fault.
type Verb string

// The faults: of the network between a process and the server, of the server, of the
// process, of the clock, and of objects.
const (
	cut, blackHole, refuse, partition, delay, loseResponse              Verb = "cut", "black hole", "refuse", "partition", "delay", "lose response"
	lag, slow, dropEvent, duplicate, reorder, noEndBookmark             Verb = "lag", "slow", "drop event", "duplicate", "reorder", "no end bookmark"
	mute, closeWatches, compact, restartCache, rewind                   Verb = "mute", "close watches", "compact", "restart cache", "rewind"
	overload, deny, expireTokens, spoilList, spoilEvent, expireContinue Verb = "overload", "deny", "expire tokens", "spoil list", "spoil event", "expire continue"
	coalesce, reject, failConversion, changeSchema                      Verb = "coalesce", "reject", "fail conversion", "change schema"
	crash, stop, pause, panics, hang, stall                             Verb = "crash", "stop", "pause", "panic", "hang", "stall"
	timeTravel                                                          Verb = "time travel"
	jump, clockStep                                                     Verb = "jump", "clock step"
	corrupt, huge, nasty                                                Verb = "corrupt", "huge", "nasty"
	foreignWrite                                                        Verb = "foreign write"
	repeat                                                              Verb = "repeat"
)

// Cut breaks the connections of the process.
func Cut() Op { return Op{Verb: cut} }

// BlackHole silently drops all traffic of the open connections, forever.
func BlackHole() Op { return Op{Verb: blackHole} }

// Refuse refuses new connections for a time.
func Refuse(d time.Duration) Op { return Op{Verb: refuse, For: d} }

// Partition drops all traffic between the process and the server for a time.
// Connections from before stay dead.
func Partition(d time.Duration) Op { return Op{Verb: partition, For: d} }

// Delay delays all traffic by a duration, for a time.
func Delay(by, d time.Duration) Op { return Op{Verb: delay, Amount: int64(by), For: d} }

// LoseResponse breaks the connection instead of answering the next write of a process;
// the write is carried out. If it is triggered by a write, it affects that write if a
// process made it and the server accepts it, else the next such write of the same kind.
// With Of it affects the next write of that kind.
func LoseResponse() Op { return Op{Verb: loseResponse, Amount: 1} }

// Lag freezes watches and lists from the cache for a time.
func Lag(d time.Duration) Op { return Op{Verb: lag, For: d} }

// Slow delays changes of one kind by a duration, on watches and in lists from the
// cache, for a time d. Other kinds are current, so reconciles that they trigger read an
// old state.
func Slow(by, d time.Duration) Op { return Op{Verb: slow, Amount: int64(by), For: d} }

// DropEvent hides the next change of a kind from the open watches. Only an audit
// reveals it, see informer.Options.Audit; without one, the processes are restarted when
// the faults end.
func DropEvent() Op { return Op{Verb: dropEvent, Amount: 1} }

// Duplicate sends the next change of a kind twice on watches.
func Duplicate() Op { return Op{Verb: duplicate, Amount: 1} }

// Reorder sends the next change of a kind after the one that follows it.
func Reorder() Op { return Op{Verb: reorder} }

// Coalesce merges the next two changes of one object of a kind into one event, sent
// with the second: no watch sees the first.
func Coalesce() Op { return Op{Verb: coalesce} }

// NoEndBookmark omits the bookmark that ends a streaming list of a kind, for a time.
func NoEndBookmark(d time.Duration) Op { return Op{Verb: noEndBookmark, For: d} }

// Mute silences the present watches of a kind. They stay open.
func Mute() Op { return Op{Verb: mute} }

// CloseWatches ends the present watches of a kind.
func CloseWatches() Op { return Op{Verb: closeWatches} }

// Compact makes the store drop its history.
func Compact() Op { return Op{Verb: compact} }

// RestartCache ends all watches and clears the watch cache.
func RestartCache() Op { return Op{Verb: restartCache} }

// Rewind undoes the last n revisions, as restoring a backup of the store does, except
// for changes by the user and the deletion of objects that the user has written. The
// processes are restarted when the faults end, as is required after a restore: a client
// cannot recognize a version that was assigned twice.
func Rewind(n int) Op { return Op{Verb: rewind, Amount: int64(n)} }

// Overload answers the next n requests with 429 or 503 and a Retry-After of one second.
func Overload(n, code int) Op { return Op{Verb: overload, Amount: int64(n), Code: code} }

// Deny answers requests of the process for a kind with 403, for a time.
func Deny(d time.Duration) Op { return Op{Verb: deny, For: d} }

// Reject refuses the next n writes of a kind with a code, such as 409, 422, 500 or 503,
// without Retry-After, as an admission webhook does. It does not affect the user.
func Reject(n, code int) Op { return Op{Verb: reject, Amount: int64(n), Code: code} }

// FailConversion answers all requests for a kind of a CRD with 500, for a time, as if
// its conversion webhook were down. Open watches continue.
func FailConversion(d time.Duration) Op { return Op{Verb: failConversion, For: d} }

// ChangeSchema rewrites the CRD of a kind with other descriptions in its schemas, as
// applying its next version does: watches of the kind end, and its published schemas
// change.
func ChangeSchema() Op { return Op{Verb: changeSchema} }

// ExpireTokens answers all requests with 401 for a time.
func ExpireTokens(d time.Duration) Op { return Op{Verb: expireTokens, For: d} }

// SpoilList damages the next list of a kind: it is truncated, garbage or an HTML page,
// depending on the seed.
func SpoilList() Op { return Op{Verb: spoilList} }

// SpoilEvent damages the next event of a kind on a watch.
func SpoilEvent() Op { return Op{Verb: spoilEvent} }

// ExpireContinue refuses the next continue token.
func ExpireContinue() Op { return Op{Verb: expireContinue, Amount: 1} }

// Crash ends the process: its network is cut forever, its context ends, and what it
// still does is not recorded. Another process starts after the given time. The server
// completes requests that it has begun.
func Crash(down time.Duration) Op { return Op{Verb: crash, For: down} }

// TimeTravel is a Crash after which the process temporarily connects to a lagging
// server: watches and lists from the cache lack the last n revisions, which the process
// had seen.
func TimeTravel(n int, down time.Duration) Op {
	return Op{Verb: timeTravel, Amount: int64(n), For: down}
}

// Stop ends the process as SIGTERM does: its context ends, it drains, and Run must
// return nil in time. Another process starts after the given time, or at its end. What the
// process does until its end is recorded.
func Stop(down time.Duration) Op { return Op{Verb: stop, For: down} }

// Pause suspends the process for a time, as SIGSTOP does: it neither sends nor reads,
// no handler is called, no key is taken up. What it has sent before arrives, and it
// reads incoming data afterwards. Its timers expire meanwhile, as on a machine, but
// take effect later.
func Pause(d time.Duration) Op { return Op{Verb: pause, For: d} }

// Panic makes the next reconcile panic before the user's code runs.
func Panic() Op { return Op{Verb: panics} }

// Hang makes the next reconcile hang for a time before the user's code runs.
func Hang(d time.Duration) Op { return Op{Verb: hang, For: d} }

// Stall makes a handler of the process hang for a time at its next event, before the
// handler's code runs, so that a source receives no events. Later events for the
// handler wait; other handlers and the stores continue.
func Stall(d time.Duration) Op { return Op{Verb: stall, For: d} }

// Jump advances the clock by d at once for all, as after the suspension of a machine. A
// bubble has one clock: wall and monotonic time advance together, for all processes.
func Jump(d time.Duration) Op { return Op{Verb: jump, For: d} }

// ClockStep makes the wall clock of the process wrong until the faults end: fast, or
// slow if by is negative. Monotonic time is unaffected. Only leases and Now use this
// clock: time.Now is shared by all in a bubble.
func ClockStep(by time.Duration) Op { return Op{Verb: clockStep, Amount: int64(by)} }

// Corrupt makes an object of a kind undecodable into its type, until the faults end. The
// user sees the original.
func Corrupt() Op { return Op{Verb: corrupt} }

// Huge adds an annotation of 200 KiB to an object of a kind.
func Huge() Op { return Op{Verb: huge, Amount: 200 << 10} }

// Nasty adds an annotation with text that is hard to handle to an object of a kind.
func Nasty() Op { return Op{Verb: nasty} }

// ForeignWrite annotates an object as another client would. Before a write of a process
// it changes the object that the process is about to write, after the process has read
// it: a write with the version that was read is answered with 409, and one that removes
// the annotation violates V23. At other times the seed chooses an object of a kind.
func ForeignWrite() Op { return Op{Verb: foreignWrite} }

// Repeat makes a Service carry out a call twice, as after a retry by a proxy, and give the
// second answer. Trigger it with BeforeWrite. It is not in Swarm: only an idempotent call
// survives it.
func Repeat() Op { return Op{Verb: repeat} }

// annotationOf returns the annotation that a fault of an object adds.
func annotationOf(v Verb) string {
	return "kit.flyball.dev/" + strings.ReplaceAll(string(v), " ", "-")
}

// bearable returns the faults that every controller must survive. The others must be
// named.
func bearable() []Op {
	return []Op{
		Cut(), BlackHole(), Refuse(2 * time.Second), Partition(5 * time.Second), Delay(50*time.Millisecond, 3*time.Second), LoseResponse(),
		Lag(2 * time.Second), Slow(2*time.Second, 15*time.Second), Duplicate(), Reorder(), NoEndBookmark(5 * time.Second), Mute(), CloseWatches(), Compact(), RestartCache(),
		Overload(3, 429), Overload(2, 503), Deny(2 * time.Second), ExpireTokens(2 * time.Second), SpoilList(), SpoilEvent(), ExpireContinue(),
		Reject(2, 409), Reject(2, 422), Reject(2, 500), Reject(2, 503),
		Crash(time.Second), TimeTravel(6, time.Second), Stop(time.Second), Pause(3 * time.Second), Panic(), Hang(5 * time.Second), Stall(5 * time.Second), Jump(time.Minute), ClockStep(time.Hour), ClockStep(-time.Hour),
		DropEvent(), Rewind(5), Corrupt(), Huge(), Nasty(), ForeignWrite(),
	}
}

type about int

const (
	theServer about = iota
	aProcess
	aKind
	aCustomKind // of a CRD
	anObject    // of a kind
)

var subjects = map[Verb]about{
	cut:            aProcess,
	blackHole:      aProcess,
	refuse:         aProcess,
	partition:      aProcess,
	delay:          aProcess,
	loseResponse:   theServer,
	lag:            theServer,
	slow:           aKind,
	dropEvent:      aKind,
	duplicate:      aKind,
	reorder:        aKind,
	coalesce:       aKind,
	noEndBookmark:  aKind,
	mute:           aKind,
	closeWatches:   aKind,
	compact:        theServer,
	restartCache:   theServer,
	rewind:         theServer,
	overload:       theServer,
	deny:           aKind,
	reject:         aKind,
	failConversion: aCustomKind,
	changeSchema:   aCustomKind,
	expireTokens:   theServer,
	spoilList:      aKind,
	spoilEvent:     aKind,
	expireContinue: theServer,
	crash:          aProcess,
	timeTravel:     aProcess,
	stop:           aProcess,
	pause:          aProcess,
	panics:         aProcess,
	hang:           aProcess,
	stall:          aProcess,
	jump:           theServer,
	clockStep:      aProcess,
	corrupt:        anObject,
	huge:           anObject,
	nasty:          anObject,
	foreignWrite:   anObject,
	repeat:         theServer,
}
