// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

/*
The protocol of package ownership, for SPIN. Explored are N identities and S shards. Each name in
capitals behind #ifdef removes a rule; SPIN then has to find a run that breaks safety.

IDENTITIES. A process that joins again is another identity. It does so, too, if its member Lease is
deleted by hand: nobody creates that again for a live member. A slot that nothing remembers any more
is used again, so a run has any number of identities, N of them at a time.

CRASH AND FREEZE need no state. A member that has crashed takes no more steps; one that is frozen
takes its next step later. Both are among the schedules, in any number. The gate stays as it is
until trust lapses.

TIME is abstract: trust lapses at any moment. What waits for D goes on only when all trust that it
waits for has lapsed, which is the protocol's assumption about time:
  - FENCE(i): the trust of i has lapsed, since D has passed since the version was seen that the
    update replaces. Sent and applied are one step: an earlier one is either the same or a
    conflict.
  - RIPE(i, s): D has passed since the incarnation (uid) of Lease s that i has seen was created.
    All trust that rests on renewals sent before has lapsed, and late answers to these give none.

REQUESTS of reconciles have no state. A gate is open, too, while one that has passed may arrive. So
a member that gives a shard away is DRAINING until each write has been answered, or D has passed
since it was cut off; and one that ends its own former identity waits as long. Both are later steps,
which the schedules have. That a write which is cut off as trust lapses arrives within the rest of D,
or never, is an assumption about time.

VERSIONS are unbounded. An update carries the version that it replaces, and is a conflict if the
Lease was written since. So the model drops updates in flight when their Lease is written.

WATCHES lag without bound. What i knows of s is whether the Lease names i (mine), and whether it
is of the present incarnation (current). A watch goes on to the present state at any time, and
skips what was between, as by a relist. That a watch shows a past state is covered: had it shown
that state earlier, the steps that it allows may still be taken later. It shows the own member
Lease (shown) and shards of the same moment: it is one watch. The other Leases that a claim looks
at need no view. It has to have seen the holder as ENDED, so that the holder has ended (gone),
which is for ever; and it replaces the version seen, so what it has seen of the shard is what is
there when it is applied.

CREATES have no version. So the model lets a create that anybody has ever sent be applied whenever
the Lease is absent.

GARBAGE. Nothing tells an ENDED Lease from an absent one, so the model collects at once.

ASSIGNMENT is arbitrary: any member claims and releases whenever the other rules let it.

SHARDS are independent but for trust: no step on one reads or writes what belongs to another. A
run of many shards, seen at one of them, is a run of S = 1. So safety for S = 1 is safety for any
number.

MEMBERS_KEPT leaves out that the Lease of a live member is deleted by hand. Its next renewals
would be conflicts, and it would end. In what it does to others that is a member that renews no
more, and lapses. So a run with such deletions is as safe as one without.

LIVENESS (-DLIVENESS) needs bounds on what disturbs: LAPSES, DELETIONS by hand, and MOVES of the
assignment. A shard is claimed and released as assigned, and a renewal is sent only where it
changes the state. Then no run is infinite, which SPIN shows as the absence of non-progress
cycles, and where a run ends each shard has to be held by a live member that it is assigned to. No
fairness is needed but that a step that stays possible is taken.
*/

#ifndef N
#define N 3
#endif
#ifndef S
#define S 1
#endif

/* What the code has too. */
#define TRUST_NUMERATOR   9
#define TRUST_DENOMINATOR 10
#define COLLECT_AFTER     10

#define MEMBER_NONE  0 /* absent */
#define MEMBER_LIVE  1
#define MEMBER_ENDED 2

#define SHARD_FREE      0
#define SHARD_HELD      1
#define SHARD_DRAINING  2
#define SHARD_RELEASING 3 /* the gate is shut, and the release has been sent */

#define FREE   N       /* the Lease of a shard names nobody */
#define ABSENT (N + 1) /* there is no Lease */

#define UNUSED 0 /* nobody has this identity */
#define ALIVE  1
#define OVER   2 /* its trust has lapsed, or it has left */

#define DEAD   3 /* forgotten, and nobody will use it */

#define IDLE    0
#define SENT    1
#define APPLIED 2 /* the answer is on its way */

#define X (i * S + s)
#define has(set, e)     (((set) >> (e)) & 1)
#define with(set, e)    set = set | (1 << (e))
#define without(set, e) set = set & ~(1 << (e))

/* The server. */
byte shard[S];   /* an identity, FREE or ABSENT */
byte lease[N];   /* of the member */
byte young;      /* shards: D has not passed since the Lease was created */

/* Members. */
byte life[N];
bit  gone[N];    /* it has been seen as ENDED */
bit  trust[N];
byte renewal[N]; /* the request in flight */
bit  shown[N];   /* the own watch has shown the newest renewal */
#ifdef FENCE_WITHOUT_CAS
bit  again[N];   /* has renewed since it was trusted first */
#endif

/* Of each member and shard; sets are of X. */
byte  work[N * S];
short mine;
short current;
short claim;     /* in flight */
short release;
short old;       /* the trust of i is older than Lease s */
short early;     /* the renewal in flight of i is older than Lease s */
#ifdef WAIT_BEFORE_CREATE
short create;
#endif
/* The same for a view of an incarnation that is no longer the present one. */
short ripe;
byte  wait[N * S]; /* the members whose trust is older */
byte  late[N * S]; /* the members whose renewal in flight is */

hidden byte j, k;

#ifdef LIVENESS
#ifndef LAPSES
#define LAPSES 1
#endif
#ifndef DELETIONS
#define DELETIONS 1
#endif
#ifndef MOVES
#define MOVES 1
#endif
byte assigned[S];
byte lapses = LAPSES, deletions = DELETIONS, moves = MOVES;
#define spend(what)         (what > 0)
#define spent(what)         what--
#define isAssigned(i, s)    (assigned[s] == i)
#define isAssignedAway(i, s) (assigned[s] != i && life[assigned[s]] == ALIVE)
#define waitsFor(i, x)      (has(wait[x], i) || has(late[x], i))
#define waits(i, s)         (has(old, (i) * S + s) || waitsFor(i, s) || waitsFor(i, S + s) || \
	waitsFor(i, (N - 1) * S + s))
#define useful(i)           (!trust[i] || lease[i] != MEMBER_LIVE || each(i, waits))
#else
#define spend(what)         1
#define spent(what)
#define isAssigned(i, s)    1
#define isAssignedAway(i, s) 1
#define useful(i)           1
#endif

#ifdef GATE_WITHOUT_TRUST
#define trusted(i) (life[i] != UNUSED)
#else
#define trusted(i) trust[i]
#endif
#ifdef RELEASE_BEFORE_DRAIN
#define passes(x) (work[x] != SHARD_FREE)
#else
#define passes(x) (work[x] == SHARD_HELD || work[x] == SHARD_DRAINING)
#endif
/* A request of s passes at i. */
#define gate(i, s) (trusted(i) && passes((i) * S + s))

/* The Lease has been written: other updates in flight are conflicts. */
inline written(s) {
	for (j : 0 .. N - 1) {
#ifndef CLAIM_WITHOUT_CAS
		without(claim, j * S + s);
#endif
		without(release, j * S + s)
	}
}

/* Keeps, for i, how old its view of s is. */
inline outdate(i, s) {
	if
	:: has(mine & current, i * S + s) && !has(young, s) -> with(ripe, i * S + s)
	:: has(mine & current, i * S + s) && has(young, s) ->
		for (k : 0 .. N - 1) {
			wait[i * S + s] = wait[i * S + s] | ((has(old, k * S + s) && trust[k]) << k);
			late[i * S + s] = late[i * S + s] | (has(early, k * S + s) << k)
		}
	:: else
	fi;
	without(current, i * S + s)
}

/* The Lease is deleted, or created. */
inline replaced(s, holder) {
	written(s);
	for (j : 0 .. N - 1) { outdate(j, s) }
	without(young, s);
	for (j : 0 .. N - 1) {
		without(old, j * S + s);
		without(early, j * S + s)
	}
	shard[s] = holder;
	if
#ifndef WAIT_BEFORE_CREATE
	:: holder != ABSENT ->
#else
	:: holder == ABSENT ->
#endif
		with(young, s);
		for (j : 0 .. N - 1) {
			old = old | (trust[j] << (j * S + s));
			early = early | ((renewal[j] != IDLE) << (j * S + s))
		}
	:: else
	fi;
	j = 0
}

/* The renewal of i has ended. Its trust is as old as that was, or there is none. */
inline settle(i, trusts) {
	renewal[i] = IDLE;
	shown[i] = 0;
	for (k : 0 .. N * S - 1) {
		wait[k] = (wait[k] & ~(1 << i)) | (((trusts) && has(late[k], i)) << i);
		without(late[k], i)
	}
	for (k : 0 .. S - 1) {
		old = (old & ~(1 << (i * S + k))) | (((trusts) && has(early, i * S + k)) << (i * S + k));
		without(early, i * S + k)
	}
	k = 0
}

/* D has passed: late answers give no trust. */
inline void(i) {
	renewal[i] = IDLE;
	shown[i] = 0;
	for (k : 0 .. N * S - 1) { without(late[k], i) }
	for (k : 0 .. S - 1) { without(early, i * S + k) }
	k = 0
}

inline unsee(x) {
	work[x] = SHARD_FREE;
	without(mine, x);
	without(current, x);
	without(ripe, x);
	wait[x] = 0;
	late[x] = 0
}

/* The trust of i has lapsed: all is lost, for ever. */
inline lapse(i) {
	life[i] = OVER;
	trust[i] = 0;
	settle(i, 0);
#ifdef FENCE_WITHOUT_CAS
	again[i] = 0;
#endif
#ifndef GATE_WITHOUT_TRUST
	for (k : 0 .. S - 1) { unsee(i * S + k) }
#endif
	k = 0
}

/* The watch of i: a Lease that names another, nobody, or has another uid is SHUT. */
inline watch(i) {
	for (k : 0 .. S - 1) {
		if
#ifdef NOT_SHUT
		:: false
#elif defined(UID_IGNORED)
		:: shard[k] != i -> unsee(i * S + k)
#else
		:: shard[k] != i || !has(current, i * S + k) -> unsee(i * S + k)
#endif
		:: else
		fi;
		if
		:: shard[k] == i -> with(mine, i * S + k); with(current, i * S + k)
		:: else
		fi
	}
	shown[i] = (renewal[i] == APPLIED)
}

#define stale(i, s) ((shard[s] == i) != has(mine & current, i * S + s) || \
	has(mine, i * S + s) && shard[s] != i)
#define named(i, s) (shard[s] == i || has(claim | release, i * S + s))
#define each(i, what) (what(i, 0) || what(i, S / 2) || what(i, S - 1))

/* Trust needs (a) the answer, and (b) that the own watch has shown the renewal. */
#ifdef TRUST_WITHOUT_WATCH
#define proven(i) (renewal[i] == APPLIED)
#else
#define proven(i) (renewal[i] == APPLIED && shown[i])
#endif

#define isAlive(i, k)  (i != (k) && (life[k] == ALIVE || life[k] == UNUSED))
#define othersAlive(i) (isAlive(i, 0) || isAlive(i, 1) || isAlive(i, N - 1))

proctype Member(byte i) {
end:	do
	/* JOIN: creates its Lease. Identities are alike, so the first that is unused is taken. */
	:: d_step { life[i] == UNUSED && (i == 0 || life[i - 1] != UNUSED) ->
		life[i] = ALIVE; lease[i] = MEMBER_LIVE; renewal[i] = APPLIED }

	/* A renewal. */
	:: d_step { life[i] == ALIVE && renewal[i] == IDLE && useful(i) -> renewal[i] = SENT }
	:: d_step { renewal[i] == SENT && lease[i] == MEMBER_LIVE ->
#ifdef FENCE_WITHOUT_CAS
		again[i] = trust[i];
#endif
		renewal[i] = APPLIED }
	:: d_step { renewal[i] == SENT && lease[i] != MEMBER_LIVE -> /* a conflict */
#ifdef OLD_IDENTITY
		lease[i] = MEMBER_LIVE; renewal[i] = APPLIED
#else
		lapse(i)
#endif
		}
#ifndef LIVENESS
	:: d_step { renewal[i] != IDLE && life[i] == ALIVE -> void(i) } /* its answer is lost */
#endif
	:: d_step { proven(i) -> trust[i] = 1; settle(i, 1) }
	:: d_step { life[i] == ALIVE && (each(i, stale) || renewal[i] == APPLIED && !shown[i]) ->
		watch(i) }
#ifdef TWO_WATCHES
	:: d_step { renewal[i] == APPLIED -> shown[i] = 1 }
#endif

	/* Its trust lapses, or it leaves. */
	:: d_step { life[i] == ALIVE && spend(lapses) -> spent(lapses); lapse(i) }
#ifdef OLD_IDENTITY
	:: d_step { life[i] == OVER -> life[i] = ALIVE }
#endif

	/* FENCE by another, with the version that was seen for D. A Lease that was absent for D
	   counts as ENDED too: nobody creates it again. */
#if defined(FENCE_AT_ONCE)
	:: d_step { lease[i] == MEMBER_LIVE ->
#elif defined(FENCE_WITHOUT_CAS)
	:: d_step { lease[i] != MEMBER_ENDED && (life[i] == OVER || trust[i] && again[i]) ->
#elif defined(ABSENT_MEMBER_AT_ONCE)
	:: d_step { life[i] != UNUSED && !gone[i] && (life[i] == OVER || lease[i] == MEMBER_NONE) ->
#else
	:: d_step { life[i] == OVER && !gone[i] ->
#endif
		lease[i] = MEMBER_ENDED; gone[i] = 1 }

#ifndef MEMBERS_KEPT
	/* Deleted by hand. */
	:: d_step { life[i] == ALIVE && lease[i] == MEMBER_LIVE && spend(deletions) ->
		spent(deletions); lease[i] = MEMBER_NONE }
#endif

	/* Forgotten. */
	:: d_step { life[i] == OVER && gone[i] && !each(i, named) ->
		life[i] = UNUSED; lease[i] = MEMBER_NONE; gone[i] = 0;
		for (k : 0 .. S - 1) { unsee(i * S + k) }
		k = 0 }
#ifdef LIVENESS
	:: d_step { life[i] == OVER && gone[i] && !each(i, named) && othersAlive(i) ->
		life[i] = DEAD; lease[i] = MEMBER_NONE }
#endif
	od
}

#ifdef CLAIM_FROM_LIVE
#define ended(h) 1
#else
#define ended(h) gone[h]
#endif

/* HELD needs D since the incarnation was created. */
#if defined(ABSENT_SHARD_AT_ONCE) || defined(WAIT_BEFORE_CREATE)
#define isRipe(i, s) 1
#else
#define isRipe(i, s) (has(current, X) -> !has(young, s) : has(ripe, X))
#endif

/* What i does with s. */
proctype Work(byte i; byte s) {
end:	do
	/* CLAIM a Lease that is FREE, or whose holder is ENDED. */
	:: d_step { trust[i] && isAssigned(i, s) && !has(mine | claim, X) &&
			shard[s] != ABSENT && shard[s] != i &&
			(shard[s] == FREE || ended(shard[s])) ->
		with(claim, X) }
	:: d_step { has(claim, X) && shard[s] != ABSENT ->
		written(s); without(claim, X); shard[s] = i }

#ifdef WAIT_BEFORE_CREATE
	:: d_step { trust[i] && shard[s] == ABSENT && !has(young, s) -> with(create, X) }
	:: d_step { has(create, X) && shard[s] == ABSENT -> without(create, X); replaced(s, i) }
#else
	/* An absent Lease is created at once. */
	:: d_step { life[i] != UNUSED && shard[s] == ABSENT -> replaced(s, i) }
	:: d_step { has(mine, X) && !has(current | ripe, X) && wait[X] == 0 ->
		with(ripe, X);
		for (j : 0 .. N - 1) {
			if
			:: has(late[X], j) -> void(j)
			:: else
			fi
		}
		j = 0 }
#endif

	/* HELD: the own watch has shown the claim. */
	:: d_step { trust[i] && has(mine, X) && work[X] == SHARD_FREE && isRipe(i, s) ->
		work[X] = SHARD_HELD }

	/* RELEASE: no new keys, then the gate is shut and the release sent. */
	:: d_step { trusted(i) && work[X] == SHARD_HELD && isAssignedAway(i, s) ->
		work[X] = SHARD_DRAINING }
	:: d_step { trusted(i) && work[X] == SHARD_DRAINING ->
		work[X] = SHARD_RELEASING;
		release = release | (has(current, X) << X) }
	:: d_step { has(release, X) -> written(s); shard[s] = FREE }
#ifdef LIVENESS
	:: d_step { life[i] == ALIVE && !isAssigned(i, s) && life[assigned[s]] != ALIVE ->
		assigned[s] = i }
	:: d_step { life[i] == ALIVE && isAssignedAway(i, s) && moves > 0 -> moves--; assigned[s] = i }
#endif
	od
}

#define older(j, s) (trust[j] && has(old, (j) * S + s))

/* A Lease of a shard is deleted by hand, created FREE by who initialises the plan, or gets old. */
proctype Lease(byte s) {
end:	do
	:: d_step { shard[s] != ABSENT && spend(deletions) -> spent(deletions); replaced(s, ABSENT) }
#ifndef WAIT_BEFORE_CREATE
	:: d_step { shard[s] == ABSENT -> replaced(s, FREE) }
#endif
	:: d_step { has(young, s) && !older(0, s) && !older(1, s) && !older((N - 2), s) &&
			!older((N - 1), s) ->
		for (j : 0 .. N - 1) {
			if
			:: has(early, j * S + s) -> void(j)
			:: else
			fi;
			without(old, j * S + s)
		}
		without(young, s) }
	od
}

/* SAFETY. A step of this process is possible only where a rule is broken. */
#define both(i, k, s) (k < N && gate(i, s) && gate(k, s))
#define twice(s) (both(0, 1, s) || both(0, 2, s) || both(1, 2, s) || \
	both(0, 3, s) || both(1, 3, s) || both(2, 3, s))
#define astray(i, s) (gate(i, s) && shard[s] != i && has(current, (i) * S + s))
#define revived(i, s) (gate(i, s) && gone[i])
#define any(what, s) (what(0, s) || what(1, s) || what(N - 2, s) || what(N - 1, s))

proctype Never(byte s) {
end:	do
	/* The gate of a shard is open at one member at most. */
	:: d_step { twice(s) -> assert(false) }
#ifndef TWO_GATES_ALONE
	/* Where it is open, the server names this member, or the Lease that did was deleted by hand. */
	:: d_step { any(astray, s) -> assert(false) }
	/* It is shut from the moment on at which the member is ENDED, or was absent for D. */
	:: d_step { any(revived, s) -> assert(false) }
#endif
	od
}

#ifdef LIVENESS
#define isHeld(s) (gate(assigned[s], s) && shard[s] == assigned[s] && life[assigned[s]] == ALIVE)

/* LIVENESS. Where no step is possible any more, each shard is held, if any member is alive. */
#define nobody (life[0] != ALIVE && life[1] != ALIVE && life[N - 1] != ALIVE)
proctype End() {
end:	timeout -> assert(nobody || isHeld(0) && isHeld(S / 2) && isHeld(S - 1))
}
#endif

init {
	byte i, s;
	d_step {
		for (s : 0 .. S - 1) { shard[s] = ABSENT }
		i = 0; s = 0
	}
	atomic {
		for (i : 0 .. N - 1) {
			run Member(i);
			for (s : 0 .. S - 1) { run Work(i, s) }
		}
		for (s : 0 .. S - 1) {
			run Lease(s);
			run Never(s)
		}
#ifdef LIVENESS
		run End();
#endif
		i = 0; s = 0
	}
}
