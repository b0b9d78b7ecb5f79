// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import "time"

// Verb names a fault.
type Verb string

// The faults of the network between a process and the server, of the server, of
// the process, of the clock and of objects.
const (
	cut, blackHole, refuse, partition, delay, loseResponse              Verb = "cut", "black hole", "refuse", "partition", "delay", "lose response"
	lag, slow, dropEvent, duplicate, reorder, noEndBookmark             Verb = "lag", "slow", "drop event", "duplicate", "reorder", "no end bookmark"
	mute, closeWatches, compact, restartCache, rewind                   Verb = "mute", "close watches", "compact", "restart cache", "rewind"
	overload, deny, expireTokens, spoilList, spoilEvent, expireContinue Verb = "overload", "deny", "expire tokens", "spoil list", "spoil event", "expire continue"
	coalesce, reject, failConversion, changeSchema                      Verb = "coalesce", "reject", "fail conversion", "change schema"
	crash, stop, pause, panics, hang, stall                             Verb = "crash", "stop", "pause", "panic", "hang", "stall"
	timeTravel                                                          Verb = "time travel"
	jump, clockStep                                                     Verb = "jump", "clock step"
	poison, huge, nasty                                                 Verb = "poison", "huge", "nasty"
)

// Cut breaks the connections of the process.
func Cut() Op { return Op{Verb: cut} }

// BlackHole loses without a word what the open connections carry, for ever.
func BlackHole() Op { return Op{Verb: blackHole} }

// Refuse refuses new connections for a time.
func Refuse(d time.Duration) Op { return Op{Verb: refuse, For: d} }

// Partition loses for a time all that the process and the server send each
// other. Connections from before stay dead.
func Partition(d time.Duration) Op { return Op{Verb: partition, For: d} }

// Delay has all arrive so much later, for a time.
func Delay(by, d time.Duration) Op { return Op{Verb: delay, Amount: int64(by), For: d} }

// LoseResponse breaks the connection in place of the answer to the next write of a
// process, which is carried out. Triggered by a write it is that one, if it comes from
// a process and is accepted; else the next one of its kind that does and is. Of a kind
// it is the next write of that.
func LoseResponse() Op { return Op{Verb: loseResponse, Amount: 1} }

// Lag has watches and lists from the cache know nothing new for a time.
func Lag(d time.Duration) Op { return Op{Verb: lag, For: d} }

// Slow has watches of one kind, and lists of it from the cache, know of each change so
// much later, for a time d. Those of other kinds go on, and the reconciles that follow from
// them read a state of the past.
func Slow(by, d time.Duration) Op { return Op{Verb: slow, Amount: int64(by), For: d} }

// DropEvent keeps the next change of a kind from the watches that are open. What
// it hides comes to light by an audit alone, see informer.Options.Audit: without
// one the processes are started anew when the faults end.
func DropEvent() Op { return Op{Verb: dropEvent, Amount: 1} }

// Duplicate tells watches the next change of a kind twice.
func Duplicate() Op { return Op{Verb: duplicate, Amount: 1} }

// Reorder tells watches the next change of a kind after the one that follows.
func Reorder() Op { return Op{Verb: reorder} }

// Coalesce tells watches of the next two changes of one object of a kind as if they were
// one, when the second is made: what the first led to nobody sees.
func Coalesce() Op { return Op{Verb: coalesce} }

// NoEndBookmark leaves the bookmark out that ends a streaming list of a kind, for
// a time.
func NoEndBookmark(d time.Duration) Op { return Op{Verb: noEndBookmark, For: d} }

// Mute has the present watches of a kind say nothing more. They stay open.
func Mute() Op { return Op{Verb: mute} }

// CloseWatches ends the present watches of a kind.
func CloseWatches() Op { return Op{Verb: closeWatches} }

// Compact has the store forget its history.
func Compact() Op { return Op{Verb: compact} }

// RestartCache ends all watches and forgets what they are served from.
func RestartCache() Op { return Op{Verb: restartCache} }

// Rewind undoes the last n revisions, as a restore of the store does, but nothing
// that the user has done, nor the end of an object that the user has written.
// The processes are started anew when the faults end, as who restores a store
// must: a version that is given twice tells nobody.
func Rewind(n int) Op { return Op{Verb: rewind, Amount: int64(n)} }

// Overload answers the next n requests with 429 or 503 and a Retry-After of a
// second.
func Overload(n, code int) Op { return Op{Verb: overload, Amount: int64(n), Code: code} }

// Deny refuses with 403 what the process asks of a kind, for a time.
func Deny(d time.Duration) Op { return Op{Verb: deny, For: d} }

// Reject refuses the next n writes of a kind with a code, such as 409, 422, 500 or
// 503, and without a word of when to try again, as an admission webhook does. The
// user's are not refused.
func Reject(n, code int) Op { return Op{Verb: reject, Amount: int64(n), Code: code} }

// FailConversion answers whatever is asked of a kind that a CRD defines with 500, for a
// time, as when its conversion webhook is down. Open watches go on.
func FailConversion(d time.Duration) Op { return Op{Verb: failConversion, For: d} }

// ChangeSchema writes the CRD of a kind anew with other texts in its schemas, as who
// applies the next version of it: the watches of the kind end, and what is published
// of its schemas changes.
func ChangeSchema() Op { return Op{Verb: changeSchema} }

// ExpireTokens refuses everybody with 401 for a time.
func ExpireTokens(d time.Duration) Op { return Op{Verb: expireTokens, For: d} }

// SpoilList damages the next list of a kind: it breaks off, is garbage or a page
// of HTML, as the seed decides.
func SpoilList() Op { return Op{Verb: spoilList} }

// SpoilEvent damages the next event of a kind on a watch.
func SpoilEvent() Op { return Op{Verb: spoilEvent} }

// ExpireContinue refuses the next continue token.
func ExpireContinue() Op { return Op{Verb: expireContinue, Amount: 1} }

// Crash ends the process: its network is cut for ever, its context ends, and
// what it still does is not seen. After the given time another one starts. What
// the server has begun by then is carried out.
func Crash(down time.Duration) Op { return Op{Verb: crash, For: down} }

// TimeTravel is a Crash after which, for a while, the process meets a server that lags
// behind: watches, and lists from the cache, know nothing of the last n revisions, of
// which the process has known.
func TimeTravel(n int, down time.Duration) Op {
	return Op{Verb: timeTravel, Amount: int64(n), For: down}
}

// Stop asks the process to end, as SIGTERM does, and waits until it has: its context
// ends, it finishes what it has begun, and Run must return nil in time. So long after
// that another one starts. All that it does is seen to its end.
func Stop(down time.Duration) Op { return Op{Verb: stop, For: down} }

// Pause has the process stand still for a time while everything else goes on, as
// SIGSTOP does: it sends and reads nothing, no handler is called, no key is taken
// up. What it has sent before arrives, what arrives is read afterwards. Its timers
// run out meanwhile, as on a machine; what follows from them waits too.
func Pause(d time.Duration) Op { return Op{Verb: pause, For: d} }

// Panic has the next reconcile panic before the user's code runs.
func Panic() Op { return Op{Verb: panics} }

// Hang has the next reconcile hang for a time before the user's code runs.
func Hang(d time.Duration) Op { return Op{Verb: hang, For: d} }

// Stall has a handler of the process hang for a time with the next event that one of them
// is to be told, before the handler's code runs: a source then hears of nothing. What
// else its informer has for it waits, the other handlers and the stores go on.
func Stall(d time.Duration) Op { return Op{Verb: stall, For: d} }

// Jump has the clock of everybody pass d while nothing else happens, as for a
// suspended machine. A bubble has one clock: wall and monotonic time go together
// in it, and no process has a time of its own.
func Jump(d time.Duration) Op { return Op{Verb: jump, For: d} }

// ClockStep has the wall clock of the process be wrong by so much, fast or with a
// negative time slow, until the faults end. Monotonic time goes on as it did. The
// clock is that of leases and of Now: time.Now is everybody's in a bubble.
func ClockStep(by time.Duration) Op { return Op{Verb: clockStep, Amount: int64(by)} }

// Poison damages an object of a kind so that its type cannot take it, until the
// faults end. The user sees it as it was.
func Poison() Op { return Op{Verb: poison} }

// Huge gives an object of a kind an annotation of 200 KiB.
func Huge() Op { return Op{Verb: huge, Amount: 200 << 10} }

// Nasty gives an object of a kind an annotation of a text that is hard to handle.
func Nasty() Op { return Op{Verb: nasty} }

// bearable is what each controller has to come through. The rest of the faults is for
// who names them.
func bearable() []Op {
	return []Op{
		Cut(), BlackHole(), Refuse(2 * time.Second), Partition(5 * time.Second), Delay(50*time.Millisecond, 3*time.Second), LoseResponse(),
		Lag(2 * time.Second), Slow(2*time.Second, 15*time.Second), Duplicate(), Reorder(), NoEndBookmark(5 * time.Second), Mute(), CloseWatches(), Compact(), RestartCache(),
		Overload(3, 429), Overload(2, 503), Deny(2 * time.Second), ExpireTokens(2 * time.Second), SpoilList(), SpoilEvent(), ExpireContinue(),
		Reject(2, 409), Reject(2, 422), Reject(2, 500), Reject(2, 503),
		Crash(time.Second), TimeTravel(6, time.Second), Stop(time.Second), Pause(3 * time.Second), Panic(), Hang(5 * time.Second), Stall(5 * time.Second), Jump(time.Minute), ClockStep(time.Hour), ClockStep(-time.Hour),
		DropEvent(), Rewind(5), Poison(), Huge(), Nasty(),
	}
}

// about is what a fault happens to.
type about int

const (
	theServer about = iota
	aProcess
	aKind
	aCustomKind // that a CRD defines
	anObject    // of a kind
)

// subjects are what each fault happens to.
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
	poison:         anObject,
	huge:           anObject,
	nasty:          anObject,
}
