// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

/*
The change of the plan, for SPIN: safety. Each identity has one of two plans. Any shard of one
plan has objects in common with any shard of the other, so gates of both are never open at once.

The plan Lease has a plan, and whether a change to it goes on (CHANGING) or is over (SET). A claim
and the gate need, as seen, that it is SET to the own plan, and that the Lease of the shard has
that plan. A change writes CHANGING first, then each shard Lease that is FREE or whose holder is
ENDED, then SET.

What ownership.pml shows is assumed: when D has passed since something was seen, each member that
trusts itself has seen it too. So there are no renewals here. A member trusts itself until it
lapses. Requests in flight are dropped when their Lease is written, as there. Creates are applied
at any time.
*/

#ifndef N
#define N 3
#endif
#define S 2

#define FREE   N
#define ABSENT (N + 1)

#define UNUSED 0
#define ALIVE  1
#define OVER   2 /* and seen as ENDED */

/* The plan Lease: a plan, CHANGING or SET; NONE: absent. */
#define CHANGING(p) (p)
#define SET(p)      (2 + (p))
#define NONE        4

#define X (i * S + s)
#define has(set, e)     (((set) >> (e)) & 1)
#define with(set, e)    set = set | (1 << (e))
#define without(set, e) set = set & ~(1 << (e))

#ifndef DELETIONS
#define DELETIONS 1
#endif
byte deletions = DELETIONS; /* by hand, of any Lease */

byte plan = SET(0);
byte shard[S];
byte planOf;  /* by shard */
byte young;   /* shards: D has not passed since the Lease was created */

byte life[N];
byte own;     /* by identity: its plan */
byte seen[N]; /* the plan Lease */
byte fresh;   /* identities: seen is the present version of the plan Lease */
byte agreed;  /* identities: each shard Lease, as seen, has the own plan */
byte finish;  /* identities: the update to SET is in flight */
byte behind[S]; /* identities that have not seen that the Lease was created */

/* Sets of X. */
byte mine;    /* as seen, the Lease names i, with its plan */
byte known;   /* what was seen is the present version */
byte ripe;    /* D has passed since what was seen was created, while it was the present one */
byte held;
byte convert; /* the update to the own plan is in flight */

hidden byte j, k;

#define ours(i)    has(own, i)
#ifdef GATE_WITHOUT_PLAN
#define isSet(i)   1
#else
#define isSet(i)   (seen[i] == SET(ours(i)))
#endif
#define gate(i, s) (life[i] == ALIVE && has(held, (i) * S + s) && isSet(i))
#define isFree(s)  (shard[s] == FREE || shard[s] < N && life[shard[s]] == OVER)

inline written(s) {
	for (j : 0 .. N - 1) {
		without(convert, j * S + s);
		without(known, j * S + s)
	}
	j = 0
}

inline planWritten(to) {
	plan = to;
	fresh = 0;
	finish = 0
}

inline created(s, holder, p) {
	written(s);
	shard[s] = holder;
	planOf = (planOf & ~(1 << s)) | ((p) << s);
	with(young, s);
	behind[s] = 0;
	for (j : 0 .. N - 1) { behind[s] = behind[s] | ((life[j] == ALIVE) << j) }
	j = 0
}

inline lose(i) {
	for (k : 0 .. S - 1) {
		without(mine, i * S + k);
		without(known, i * S + k);
		without(held, i * S + k);
		without(ripe, i * S + k);
		without(behind[k], i)
	}
	without(fresh, i);
	without(agreed, i);
	seen[i] = NONE;
	k = 0
}

inline watch(i) {
	with(agreed, i);
	for (k : 0 .. S - 1) {
		if
		:: shard[k] == i && has(planOf, k) == ours(i) -> with(mine, i * S + k)
		:: else -> without(mine, i * S + k); without(held, i * S + k)
		fi;
		if
		:: has(behind[k], i) -> without(held, i * S + k)
		:: else
		fi;
		if
		:: shard[k] == ABSENT || has(planOf, k) != ours(i) -> without(agreed, i)
		:: else
		fi;
		with(known, i * S + k);
		ripe = (ripe & ~(1 << (i * S + k))) | ((shard[k] != ABSENT && !has(young, k)) << (i * S + k));
		without(behind[k], i)
	}
	seen[i] = plan;
	with(fresh, i);
	if
	:: !isSet(i) -> for (k : 0 .. S - 1) { without(held, i * S + k) }
	:: else
	fi;
	k = 0
}

#define named(i) (shard[0] == i || shard[1] == i || has(finish, i) || \
	has(convert, i * S) || has(convert, i * S + 1))
#ifdef SET_AT_ONCE
#define hasYoung(i) 0
#else
#define hasYoung(i) (!has(ripe, i * S) || !has(ripe, i * S + 1))
#endif

proctype Member(byte i) {
end:	do
	:: d_step { life[i] == UNUSED && (i == 0 || life[i - 1] != UNUSED) -> life[i] = ALIVE }
	:: d_step { life[i] == UNUSED && (i == 0 || life[i - 1] != UNUSED) ->
		life[i] = ALIVE; with(own, i) }
	:: d_step { life[i] == ALIVE -> watch(i) }
	:: d_step { life[i] == ALIVE -> life[i] = OVER; lose(i) }
	:: d_step { life[i] == OVER && !named(i) -> life[i] = UNUSED; without(own, i) }

	/* The plan Lease. */
	:: d_step { life[i] != UNUSED && plan == NONE ->
#ifdef CREATED_SET
		planWritten(SET(ours(i)))
#else
		planWritten(CHANGING(ours(i)))
#endif
		}
#ifndef CHANGED_LAST
	:: d_step { life[i] == ALIVE && plan != NONE && plan != SET(ours(i)) &&
			plan != CHANGING(ours(i)) ->
		planWritten(CHANGING(ours(i))) }
	:: d_step { life[i] == ALIVE && has(fresh, i) && seen[i] == CHANGING(ours(i)) &&
			has(agreed, i) && !hasYoung(i) ->
		with(finish, i) }
#else
	:: d_step { life[i] == ALIVE && has(fresh, i) && seen[i] != NONE && seen[i] != SET(ours(i)) &&
			has(agreed, i) && !hasYoung(i) ->
		with(finish, i) }
#endif
	:: d_step { has(finish, i) -> planWritten(SET(ours(i))) }
	od
}

proctype Work(byte i; byte s) {
end:	do
	:: d_step { life[i] == ALIVE && has(known, X) && shard[s] != ABSENT && isFree(s) &&
#ifndef CHANGED_LAST
			(seen[i] == CHANGING(ours(i)) || seen[i] == SET(ours(i))) &&
#endif
			has(planOf, s) != ours(i) ->
		with(convert, X) }
	:: d_step { has(convert, X) ->
		written(s); shard[s] = FREE; planOf = (planOf & ~(1 << s)) | (ours(i) << s) }
	/* The update replaces the version seen; what was seen of the plan Lease may be older. */
	:: d_step { life[i] == ALIVE && isSet(i) && has(known, X) && shard[s] != ABSENT && isFree(s) &&
			has(planOf, s) == ours(i) ->
		written(s); shard[s] = i }
	:: d_step { life[i] == ALIVE && isSet(i) && has(mine, X) && !has(held, X) && has(ripe, X) ->
		with(held, X) }
	:: d_step { has(held, X) && isSet(i) ->
		without(held, X);
		if
		:: shard[s] == i && !has(behind[s], i) -> written(s); shard[s] = FREE
		:: else
		fi;
		without(mine, X) }
	/* Created at any time, by anybody. */
	:: d_step { life[i] != UNUSED && shard[s] == ABSENT -> created(s, i, ours(i)) }
	:: d_step { life[i] != UNUSED && shard[s] == ABSENT -> created(s, FREE, ours(i)) }
	od
}

proctype Others(byte s) {
end:	do
	:: d_step { has(young, s) && behind[s] == 0 ->
		without(young, s);
		for (j : 0 .. N - 1) { ripe = ripe | ((life[j] == ALIVE) << (j * S + s)) }
		j = 0 }
	:: d_step { shard[s] != ABSENT && deletions > 0 ->
		deletions--; written(s); shard[s] = ABSENT; without(young, s); without(planOf, s); behind[s] = 0 }
	:: d_step { s == 0 && plan != NONE && deletions > 0 -> deletions--; planWritten(NONE) }
	od
}

#define opens(i, s, k, t) (gate(i, s) && gate(k, t) && ours(i) != ours(k))
#define overlap(i, k) (opens(i, 0, k, 0) || opens(i, 0, k, 1) || opens(i, 1, k, 0) || \
	opens(i, 1, k, 1))
#define twice(i, k) (gate(i, 0) && gate(k, 0) || gate(i, 1) && gate(k, 1))

proctype Never() {
end:	do
	/* Gates of both plans, or two of one shard. */
	:: d_step { overlap(0, 1) || overlap(0, N - 1) || overlap(1, N - 1) -> assert(false) }
	:: d_step { twice(0, 1) || N > 2 && (twice(0, N - 1) || twice(1, N - 1)) -> assert(false) }
	od
}

init {
	byte i;
	d_step {
		shard[0] = FREE; shard[1] = FREE;
		for (i : 0 .. N - 1) { seen[i] = NONE }
		i = 0
	}
	atomic {
		for (i : 0 .. N - 1) {
			run Member(i);
			run Work(i, 0);
			run Work(i, 1)
		}
		run Others(0);
		run Others(1);
		run Never();
		i = 0
	}
}
