/*
 * Several processes share one limit that a store counts. README.md beside this file says which line stands for which file, and what is
 * left out. Every step of a process or of the store is one atomic option; calls, faults and ticks are bounded, so that all runs end.
 *
 * One caller, calls of cost 1. Without ticks the limit is a window that does not end; with ticks it is a bucket, of which each tick
 * refills one permit.
 */

#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef LIMIT
#define LIMIT 4
#endif
/* How many calls are made in all; a call that no permit is left for is not one. */
#ifndef CALLS
#define CALLS 5
#endif
/* How many faults happen, and how many permits time refills. */
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef TICKS
#define TICKS 0
#endif
/* Permits of a lease; 0: none are leased. */
#ifndef LEASE
#define LEASE 0
#endif
/* Versions of the rule that are in force side by side; the second has the limit LIMIT_B. */
#ifndef VERSIONS
#define VERSIONS 1
#endif
#ifndef LIMIT_B
#define LIMIT_B LIMIT
#endif
/* The part of a share that is kept for calls under way: a twentieth, one permit at least (local-fallback.ts: MARGIN). */
#ifndef MARGIN
#define MARGIN 1
#endif

/* Which faults happen: a scene defines some of them. */
#ifndef SILENT
#define SILENT 0
#endif
#ifndef EMPTY
#define EMPTY 0
#endif
#ifndef CUT
#define CUT 0
#endif
#ifndef DIES
#define DIES 0
#endif
#ifndef JOINS
#define JOINS 0
#endif
#ifndef OLD
#define OLD 0
#endif
#ifndef FAILOVER
#define FAILOVER 0
#endif
#ifndef CLOCK
#define CLOCK 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef LOST_ANSWER
#define LOST_ANSWER 0
#endif

/*
 * The allowances of docs/reliability.md, "What can be over, and by how much": the most that each adds to what may be admitted, each
 * time that its cause happens.
 */
#define SHARE ((LIMIT + PROCESSES - 1) / PROCESSES)
/* A process whose store is away knows less than what others were admitted: at most its share. */
#define MOVED_CALLER SHARE
/* A process that is cut off alone, or notices an outage that others do not: its share. */
#define CUT_OFF_ALONE SHARE
/* A call that was under way when the store lost its counts. */
#define UNDER_WAY_AT_LOSS 1
/* What a process has reported since its last answer, when the store loses its counts: others have not heard of it. */
#define REPORTED_AND_UNHEARD SHARE
/* A call of a process whose answers are late, if the fleet uses the limit faster than before. */
#define LATE_CALL 1
/* A process that is killed before it has reported: what it was admitted meanwhile, at most its share. */
#define KILLED_BEFORE_REPORT SHARE
/* Asynchronous replication: the writes that the replica has missed. */
#define MISSED_WRITES LIMIT
/* A process that is started when the store is back and others have not reported: what they were admitted meanwhile. */
#define STARTED_BEFORE_REPORTS LIMIT
/* A process that is started while the store is away, and is not told the size of its fleet. */
#define STARTED_WITHOUT_STORE LIMIT

/*
 * What the store may count beyond what was admitted, so that callers get less: a call that it reads when its process has decided it already,
 * or whose answer is lost.
 */
#define READ_AFTER_SILENCE 1
#define ANSWER_LOST 1

#ifdef RETURN_BEFORE_OTHERS
#define early true
#else
#define early false
#endif

#define NONE 0

/* The link of a process to its store. */
#define OFF 0
#define UP 1
#define AWAY 2
#define GATHERING 3
#define REPORTING 4

/* The call of a process that the store is asked about: not answered; or the answer is on its way. */
#define ASKED 1
#define YES 2
#define NO 3
#define FORGOTTEN 4

/* What became of it for its caller. */
#define OPEN 0
#define PASSED 1
#define REFUSED 2

#define bit(p) (1 << (p))
#define ALL (bit(PROCESSES) - 1)
#define min(a, b) ((a) < (b) -> (a) : (b))
#define over(a, b) ((a) > (b) -> (a) - (b) : 0)

/* ---- the store ---- */
byte count[VERSIONS]
byte held[PROCESSES]
byte leased
byte era = 1
bool isUp = true
/* Processes whose way to the store is broken. */
byte cut
/* Requests of connections that were replaced: a store that was silent reads them when it goes on. */
byte stray
/* Members, and by which size each takes its share (shares.ts). */
byte members
byte recorded[PROCESSES]
/* What was counted when the store failed last. */
byte had[VERSIONS]
byte kept[VERSIONS]
bool isKept

/* ---- the processes ---- */
byte link[PROCESSES]
byte knows[PROCESSES]
byte reminded[PROCESSES]
bool hasLost[PROCESSES]
byte version[PROCESSES]
/* The size by which a process takes its share; 0: it takes none. */
byte size[PROCESSES]
/* How much the store had counted when it last answered; 0 at first, and whether it has answered at all. */
byte seen[PROCESSES]
bool hasHeard[PROCESSES]
/* What this process may admit without the store, and while answers are late. */
byte left[PROCESSES]
byte late[PROCESSES]
/* Admitted here and not counted in the store; reported, in which era, and not confirmed. */
byte owed[PROCESSES]
byte told[PROCESSES]
byte toldIn[PROCESSES]
/* What it has reported since the store last answered it: others do not know that it is among what they hear of. */
byte unheard[PROCESSES]
/* It has decided calls by itself, and, if it has heard of the store since, goes by what it heard (local-fallback.ts: #isBeyondSeen). */
bool hasDecided[PROCESSES]
bool goesBySeen[PROCESSES]
/* Leased permits that are not used, and those that are and were not reported. */
byte lease[PROCESSES]
byte used[PROCESSES]
byte call[PROCESSES]
byte outcome[PROCESSES]
bool isHere[PROCESSES]
byte said[PROCESSES]
/* Of a process on its way back: which others it has seen since, and which of them are back. */
byte heard[PROCESSES]
byte back[PROCESSES]
bool isCharged[PROCESSES]

/* ---- what is checked ---- */
byte admitted
byte allowed
byte wasted
byte calls = CALLS
byte faults = FAULTS
byte ticks = TICKS
byte turn
byte alive
hidden byte q
hidden byte v
hidden byte x
hidden byte y

#define limitOf(p) (version[p] == 0 -> LIMIT : LIMIT_B)
#define largest (LIMIT > LIMIT_B -> LIMIT : LIMIT_B)
#define reaches(p) (isUp && !(cut & bit(p)))
#define room(p) over(limitOf(p), count[version[p]] + leased)
/* The share of a process, and what it takes of what is left when `used` is used (part.ts, local-fallback.ts). */
#define here(p) (size[p] == 0 -> 0 : limitOf(p) / size[p] + (p < limitOf(p) % size[p] -> 1 : 0))
#define part(p, n) (over(limitOf(p), n) * here(p) / limitOf(p))
#define shareOf(p, n) (here(p) == limitOf(p) -> part(p, n) : over(part(p, n), MARGIN))

inline countIn(p, n) {
#ifdef VERSIONS_SIDE_BY_SIDE
  count[version[p]] = count[version[p]] + n
#else
  for (v : 0 .. VERSIONS - 1) { count[v] = count[v] + n }
#endif
}

#define allow(n, most) allowed = allowed + min(n, most)

inline admit() {
  admitted++;
  assert(admitted <= largest + allowed)
}

#define isWithinSeen(p) (here(p) == limitOf(p) || !(goesBySeen[p] || TICKS) || owed[p] + 1 <= part(p, seen[p]))
#define fitsHere(p) (left[p] > 0 && isWithinSeen(p))

/* A call is counted in this process. */
inline takeHere(p) {
  left[p]--; hasDecided[p] = true
}

/* What a process may be admitted by itself while others use the whole limit. */
#define stake(q) (TICKS -> SHARE : left[q] + owed[q] + (isHere[q] && outcome[q] == OPEN -> 1 : 0))

#ifdef ASKED_WHILE_GATHERING
#define asksWhileGathering(p) true
#else
#define asksWhileGathering(p) (TICKS == 0 && !hasLost[p] && knows[p] == era)
#endif

/* ---- messages ---- */

/* A process hears how much the store has counted. */
inline hear(p, n) {
  hasHeard[p] = true; unheard[p] = 0;
  goesBySeen[p] = goesBySeen[p] || hasDecided[p];
  if
  :: link[p] == UP -> seen[p] = n; left[p] = shareOf(p, n); late[p] = left[p]
  :: else -> seen[p] = (n > seen[p] -> n : seen[p])
  fi
}

/* The call is decided in this process (failover-store.ts: #decideHere, #takeHere). */
inline decideHere(p) {
  if
  :: call[p] != NONE && outcome[p] == OPEN ->
    if
    :: isHere[p] -> owed[p]++; outcome[p] = PASSED; admit()
    :: !isHere[p] && fitsHere(p) -> takeHere(p); owed[p]++; outcome[p] = PASSED; admit()
    :: else -> outcome[p] = REFUSED
    fi
  :: else -> skip
  fi
}

/* A question carries the era whose counts the process knows, or has reminded the store of (era.ts); until it is answered, `said` has that. */
inline ask(p) {
  call[p] = ASKED;
  said[p] = (link[p] != UP && reminded[p] == era -> era : knows[p])
}

inline endCall(p) {
  call[p] = NONE; outcome[p] = OPEN; isHere[p] = false; said[p] = 0
}

/* The connection is replaced: what was asked may still be read by a store that was silent; an answer on its way is lost. */
inline dropCall(p) {
  if
  :: call[p] == ASKED && SILENT ->
    if
    :: stray++
    :: true
    fi
  :: call[p] == YES -> wasted = wasted + ANSWER_LOST
  :: else -> skip
  fi;
  endCall(p)
}

#ifdef LEASE_BESIDE_SHARE
#define leaseInUse(p) (lease[p] + used[p])
#else
#define leaseInUse(p) used[p]
#endif

/* The store holds no permits any more. A bucket may have refilled what others saw as held before it was used: uses are owed. */
inline forgetLease(p) {
#ifndef LEASE_USE_FORGOTTEN
  if
  :: TICKS -> owed[p] = owed[p] + used[p]
  :: else -> skip
  fi;
#endif
  used[p] = 0;
#ifndef LEASE_KEPT_OVER_FLUSH
  lease[p] = 0
#endif
}

/* Others may have used what this process does not know of. */
inline chargeStale(p) {
  x = had[version[p]]; allow(over(left[p], shareOf(p, x)), MOVED_CALLER)
}

/* The store cannot be asked any more (failover-store.ts: #switch). */
inline switchOff(p) {
  if
  :: isUp && (cut & bit(p)) -> allow(stake(p), CUT_OFF_ALONE); isCharged[p] = true
  :: else -> chargeStale(p)
  fi;
  /* what was used of leases and not reported is no part of the share: #keepLeases */
  left[p] = over(left[p], leaseInUse(p));
#if !defined(LEASE_BESIDE_SHARE) && !defined(LEASE_KEPT_OVER_FLUSH)
  /* the rest is given back when the store can be asked again */
  lease[p] = 0;
#endif
  link[p] = AWAY;
  decideHere(p);
  dropCall(p)
}

/* The store is away again before this process has returned: after its report others may have. */
inline chargeUnreturned(p) {
  if
  :: isUp && (cut & bit(p)) -> allow(stake(p), CUT_OFF_ALONE)
  :: !(isUp && (cut & bit(p))) && link[p] == REPORTING && isHere[p] && outcome[p] == OPEN -> left[p]++; chargeStale(p); left[p]--
  :: !(isUp && (cut & bit(p))) && link[p] == REPORTING && !(isHere[p] && outcome[p] == OPEN) -> chargeStale(p)
  :: else -> skip
  fi
}

inline leaveAgain(p) {
  chargeUnreturned(p);
  decideHere(p); dropCall(p); link[p] = AWAY
}

/* The store has lost its counts (failover-store.ts: #lost). */
inline lose(p) {
  hasLost[p] = true;
  if
  :: link[p] == UP -> switchOff(p)
  :: else -> skip
  fi;
  forgetLease(p)
}

/* Reports what the store had counted (failover-store.ts: #remind, backlog.ts: recall). */
inline remind(p) {
  hasLost[p] = false;
  forgetLease(p);
  if
#ifdef EMPTY_RESTART_REPORTED_TWICE
  :: told[p] > 0 -> owed[p] = owed[p] + told[p]; told[p] = 0
#else
  :: told[p] > 0 && toldIn[p] != era -> owed[p] = owed[p] + told[p]; wasted = wasted + told[p]; told[p] = 0
#endif
  :: else -> skip
  fi;
  x = min(seen[p], limitOf(p));
  if
  :: x > count[version[p]] -> count[version[p]] = x
  :: else -> skip
  fi;
  reminded[p] = era
}

/* A heartbeat (attend.lua): others on their way back see it. */
inline register(p, isBack) {
  members = members | bit(p);
  for (q : 0 .. PROCESSES - 1) {
    if
    :: link[q] == GATHERING || link[q] == REPORTING ->
      heard[q] = heard[q] | bit(p);
      if
      :: isBack -> back[q] = back[q] | bit(p)
      :: else -> back[q] = back[q] & (ALL - bit(p))
      fi
    :: else -> skip
    fi
  }
}

#define bitsOf(n) (((n) & 1) + (((n) >> 1) & 1) + (((n) >> 2) & 1) + (((n) >> 3) & 1))
#define knownSize(p) (size[p] > bitsOf(members) -> size[p] : bitsOf(members))
#define isComplete(p, mask) (bitsOf(mask) >= knownSize(p))

/* A process waits no longer for others that do not reach the store: they count by themselves (recovery.ts: MOST_REJOIN_MS). */
inline chargeMissing(p, mask) {
  for (q : 0 .. PROCESSES - 1) {
    if
    :: !((mask) & bit(q)) && link[q] != OFF && !isCharged[q] ->
      allow(stake(q), CUT_OFF_ALONE); isCharged[q] = true
    :: else -> skip
    fi
  }
}

/* True if each process that was not seen cannot reach the store, or has ended. */
#define isAbsent(q, mask) (((mask) & bit(q)) || link[q] == OFF || !reaches(q))
#if PROCESSES == 2
#define restIsAbsent(mask) (isAbsent(0, mask) && isAbsent(1, mask))
#else
#define restIsAbsent(mask) (isAbsent(0, mask) && isAbsent(1, mask) && isAbsent(2, mask))
#endif

inline report(p) {
  x = min(owed[p], room(p));
  countIn(p, x);
  told[p] = told[p] + x;
  toldIn[p] = era;
  owed[p] = 0
}

/* What was reported is among what the store counts (failover-store.ts: #confirmReports). */
inline confirm(p) {
  seen[p] = min(seen[p] + told[p], limitOf(p));
  unheard[p] = unheard[p] + told[p];
  told[p] = 0
}

inline recover(p) {
  link[p] = UP;
  isCharged[p] = false;
  confirm(p);
  heard[p] = 0; back[p] = 0
}

#define isBehind(q, p) (q != p && (link[q] == GATHERING || link[q] == REPORTING) && (!(heard[q] & bit(p)) || !(back[q] & bit(p))))
#if PROCESSES == 2
#define needsBeat(p) (isBehind(0, p) || isBehind(1, p))
#else
#define needsBeat(p) (isBehind(0, p) || isBehind(1, p) || isBehind(2, p))
#endif
/* Others have not seen this process since they have reached the store. */
#define isUnseen(q, p) (q != p && (link[q] == GATHERING || link[q] == REPORTING) && !(heard[q] & bit(p)))
#if PROCESSES == 2
#define needsSign(p) (isUnseen(0, p) || isUnseen(1, p))
#else
#define needsSign(p) (isUnseen(0, p) || isUnseen(1, p) || isUnseen(2, p))
#endif
#define othersRecorded(q, p, n) (q == p || recorded[q] == 0 || recorded[q] >= n)
#if PROCESSES == 2
#define haveRoom(p, n) (othersRecorded(0, p, n) && othersRecorded(1, p, n))
#else
#define haveRoom(p, n) (othersRecorded(0, p, n) && othersRecorded(1, p, n) && othersRecorded(2, p, n))
#endif
#define membersWith(p) (bitsOf(members | bit(p)))
#ifdef SHARE_TAKEN_EARLY
#define mayTake(p) true
#else
#define mayTake(p) haveRoom(p, membersWith(p))
#endif
#define needsClaim(p) (!(members & bit(p)) || recorded[p] != size[p] || (size[p] > 0 && size[p] < membersWith(p)) \
  || ((size[p] == 0 || size[p] > membersWith(p)) && mayTake(p)))

/* ---- one process ---- */

proctype Process(byte p) {
end:
  do
  /* a permit that is leased admits a call without the store (lease-book.ts: take) */
  :: atomic { LEASE && lease[p] > 0 && calls > 0 -> calls--; lease[p]--; used[p]++; admit() }

  /* the store is asked (failover-store.ts: #ask) */
  :: atomic { link[p] == UP && reaches(p) && call[p] == NONE && lease[p] == 0 && calls > 0 -> calls--; ask(p) }
  /* on the way back a call is counted here, and the store is asked, too (#takeUnleased) */
  :: atomic { (link[p] == GATHERING || link[p] == REPORTING) && reaches(p) && call[p] == NONE && fitsHere(p) && calls > 0 ->
      calls--; takeHere(p);
      /* not before reports begin of a bucket, nor if counts were lost: others may yet remind the store of them; the call is owed */
      if
      :: link[p] == REPORTING || asksWhileGathering(p) -> isHere[p] = true; ask(p)
      :: else -> owed[p]++; admit()
      fi
    }
  /* without the store this process decides (local-fallback.ts: take) */
  :: atomic { link[p] == AWAY && fitsHere(p) && calls > 0 -> calls--; takeHere(p); owed[p]++; admit() }

  /* the store reads the question (run.lua, decide.lua) */
  :: atomic { call[p] == ASKED && reaches(p) ->
      if
      :: said[p] != era -> call[p] = FORGOTTEN
      :: said[p] == era && room(p) > 0 -> countIn(p, 1); said[p] = count[version[p]] + leased; call[p] = YES
      :: said[p] == era && room(p) == 0 -> said[p] = count[version[p]] + leased; call[p] = NO
      fi
    }
  /* the process reads the answer (#answered, #heardLate) */
  :: atomic { call[p] >= YES && reaches(p) ->
      if
      :: call[p] == FORGOTTEN && link[p] == UP -> lose(p)
      :: call[p] == FORGOTTEN && link[p] != UP -> lose(p); chargeUnreturned(p); decideHere(p); endCall(p)
      :: call[p] != FORGOTTEN && outcome[p] == OPEN ->
        if
        :: call[p] == YES -> hear(p, said[p]); endCall(p); admit()
        :: call[p] == NO -> hear(p, said[p]); endCall(p)
        fi
      :: call[p] == YES && outcome[p] == REFUSED ->
#ifndef LATE_COUNT_KEPT
        /* the count is nobody's: it is refunded */
        if
        :: count[version[p]] > 0 -> for (v : 0 .. VERSIONS - 1) { count[v]-- }
        :: else -> skip
        fi;
#endif
        endCall(p)
      :: call[p] == YES && outcome[p] == PASSED ->
        if
        :: owed[p] > 0 -> owed[p]--
        :: else -> wasted++
        fi;
        endCall(p)
      :: call[p] == NO && outcome[p] != OPEN -> endCall(p)
      fi
    }
#if LATE
  /* the answer is late, though the store is not away (#late, #givenUp, late-allowance.ts) */
  :: atomic { link[p] == UP && call[p] != NONE && outcome[p] == OPEN ->
      if
      :: hasHeard[p] && late[p] >= 2 && fitsHere(p) ->
        late[p] = late[p] - 2; takeHere(p); owed[p]++; outcome[p] = PASSED; allow(1, LATE_CALL); admit()
#ifdef LATE_ANSWER_AT_START
      :: !hasHeard[p] -> owed[p]++; outcome[p] = PASSED; admit()
#endif
      :: (!hasHeard[p] || late[p] < 2 || !fitsHere(p)) -> outcome[p] = REFUSED
      fi
    }
  :: atomic { link[p] == GATHERING && call[p] != NONE && outcome[p] == OPEN -> decideHere(p) }
  :: atomic { link[p] == REPORTING && call[p] != NONE && outcome[p] == OPEN -> allow(1, LATE_CALL); decideHere(p) }
#endif
  /* calls that the store has missed though it could be asked (#settleSoon) */
  :: atomic { link[p] == UP && reaches(p) && knows[p] == era && owed[p] > 0 && call[p] == NONE ->
      report(p); confirm(p) }

  /* the process notices that it cannot ask, or that counts are lost (heartbeat.ts, deadline.ts) */
  :: atomic { link[p] == UP && !reaches(p) -> switchOff(p) }
  :: atomic { link[p] == UP && reaches(p) && knows[p] != era && call[p] == NONE -> lose(p) }
  :: atomic { (link[p] == GATHERING || link[p] == REPORTING) && !reaches(p) -> leaveAgain(p) }

  /* leases: report and renew, end here, end in the store (lease.ts, leases.lua) */
#if LEASE
  :: atomic { link[p] == UP && reaches(p) && knows[p] == era && lease[p] == 0 && call[p] == NONE &&
      (used[p] > 0 || (held[p] == 0 && calls > 0 && room(p) >= 2 * LEASE)) ->
      x = min(used[p], held[p]);
      countIn(p, x);
      leased = leased - held[p]; held[p] = 0; used[p] = 0;
      if
      :: calls > 0 && room(p) >= 2 * LEASE -> held[p] = LEASE; lease[p] = LEASE; leased = leased + LEASE
      :: else -> skip
      fi;
      x = count[version[p]] + leased;
      hear(p, x)
    }
  /* the process stops using it before the store takes it back */
  :: atomic { lease[p] > 0 -> lease[p] = 0 }
  :: atomic { held[p] > 0 && lease[p] == 0 && isUp ->
      wasted = wasted + over(held[p], used[p]);
      countIn(p, held[p]);
      leased = leased - held[p]; held[p] = 0; used[p] = 0 }
#endif

  /* the way back (recovery.ts): a probe, */
  :: atomic { link[p] == AWAY && reaches(p) ->
      if
      :: hasLost[p] || (knows[p] != 0 && knows[p] != era) ->
        remind(p)
      :: else -> skip
      fi;
      link[p] = GATHERING;
      heard[p] = 0; back[p] = 0;
      register(p, false)
    }
  /* until all have been seen, */
  :: atomic { link[p] == GATHERING && reaches(p) && call[p] != FORGOTTEN &&
      (hasLost[p] || (knows[p] != era && reminded[p] != era) || isComplete(p, heard[p] | bit(p)) || restIsAbsent(heard[p] | bit(p)) || needsSign(p) || early ) ->
      register(p, false);
      if
      :: hasLost[p] || (knows[p] != 0 && knows[p] != era && reminded[p] != era) -> remind(p)
      :: else ->
        if
        :: isComplete(p, heard[p]) || restIsAbsent(heard[p]) || early -> chargeMissing(p, heard[p]); reminded[p] = era; link[p] = REPORTING
        :: else -> skip
        fi
      fi
    }
  /* a report, and until all have reported. */
  :: atomic { link[p] == REPORTING && reaches(p) && (call[p] == NONE || hasLost[p]) &&
      (hasLost[p] || reminded[p] != era || owed[p] > 0 || !(back[p] & bit(p)) || isComplete(p, back[p]) || restIsAbsent(back[p]) || needsBeat(p) || early ) ->
      if
      :: hasLost[p] || reminded[p] != era -> lose(p); leaveAgain(p)
      :: else ->
        report(p);
        register(p, true);
        knows[p] = era;
        if
        :: isComplete(p, back[p]) || early -> recover(p)
        :: !isComplete(p, back[p]) && restIsAbsent(back[p]) -> chargeMissing(p, back[p]); recover(p)
        :: else -> skip
        fi
      fi
    }
#if LOST_ANSWER
  /* the answer to a report is lost: it is sent again, and may be counted twice */
  :: atomic { link[p] == REPORTING && reaches(p) && call[p] == NONE && !hasLost[p] && reminded[p] == era && owed[p] > 0 && faults > 0 ->
      faults--;
      x = min(owed[p], room(p));
      countIn(p, x);
      wasted = wasted + x;
      link[p] = AWAY
    }
#endif
  /* a heartbeat of a process that counts in the store */
  :: atomic { link[p] == UP && reaches(p) && knows[p] == era && needsBeat(p) -> register(p, true) }

#if JOINS
  /* a process starts (heartbeat.ts: start), and claims its share (shares.ts) */
  :: atomic { link[p] == OFF && faults > 0 && !(members & bit(p)) ->
      faults--; alive++;
      if
      :: reaches(p) -> link[p] = UP; knows[p] = era; size[p] = 0;
        /* it does not wait for those that have not reported yet */
        for (q : 0 .. PROCESSES - 1) {
          if
          :: link[q] > UP && !isCharged[q] -> allow(stake(q), STARTED_BEFORE_REPORTS); isCharged[q] = true
          :: else -> skip
          fi
        }
      :: !reaches(p) -> link[p] = AWAY; knows[p] = 0; size[p] = 1; left[p] = LIMIT; allow(LIMIT, STARTED_WITHOUT_STORE)
      fi
    }
  :: atomic { link[p] == UP && reaches(p) && knows[p] == era && needsClaim(p) ->
      members = members | bit(p);
      recorded[p] = size[p];
      x = bitsOf(members);
      if
      :: (size[p] == 0 || size[p] > x) && mayTake(p) ->
        recorded[p] = (recorded[p] == 0 -> x : min(recorded[p], x));
        if
        :: size[p] = x
        :: LOST_ANSWER && faults > 0 -> faults--
        fi
      :: else ->
        if
        :: size[p] > 0 && size[p] < x -> size[p] = x; recorded[p] = x
        :: else -> skip
        fi
      fi;
      left[p] = over(shareOf(p, seen[p]), owed[p]);
      late[p] = left[p]
    }
#endif
#if DIES
  :: atomic { link[p] != OFF && faults > 0 && alive > 1 ->
      alive--;
      faults--;
      allow(owed[p] + told[p], KILLED_BEFORE_REPORT);
      wasted = wasted + (call[p] == YES -> ANSWER_LOST : 0);
      endCall(p);
      link[p] = OFF; lease[p] = 0; left[p] = 0; owed[p] = 0; told[p] = 0; size[p] = 0; late[p] = 0; seen[p] = 0; hasHeard[p] = false
    }
  /* a member without a heartbeat is forgotten */
  :: atomic { link[p] == OFF && isUp && (members & bit(p)) -> members = members & (ALL - bit(p)); recorded[p] = 0 }
#endif
  od
}

/* ---- the store and its faults ---- */

inline remember() {
  for (v : 0 .. VERSIONS - 1) { had[v] = (count[v] + leased > had[v] -> count[v] + leased : had[v]) }
}

/*
 * No time passes between an answer and its reading, while a process is yet to notice that it cannot ask (local-fallback.ts: begin), and
 * while processes report (backlog.ts: reportedForUs).
 */
#define mayTick(q) (call[q] != YES && link[q] != REPORTING && !(link[q] == UP && (!reaches(q) || knows[q] != era)))

proctype Store() {
end:
  do
#if SILENT
  /* it does not answer, and has its counts when it does again */
  :: atomic { isUp && faults > 0 -> faults--; remember(); isUp = false }
  :: atomic { !isUp ->
      isUp = true;
      /* an outage that only some have noticed: the others ask as before */
      y = 0;
      for (q : 0 .. PROCESSES - 1) {
        if
        :: link[q] != AWAY && link[q] != OFF -> y = 1
        :: else -> skip
        fi
      }
      for (q : 0 .. PROCESSES - 1) {
        if
        :: y == 1 && link[q] == AWAY && !isCharged[q] -> allow(stake(q), CUT_OFF_ALONE); isCharged[q] = true
        :: else -> skip
        fi
      }
    }
  :: atomic { isUp && stray > 0 ->
      stray--;
      if
      :: count[0] + leased < LIMIT -> wasted = wasted + READ_AFTER_SILENCE; for (v : 0 .. VERSIONS - 1) { count[v]++ }
      :: else -> skip
      fi
    }
#endif
#if EMPTY
  /* it loses its counts: FLUSHALL, or a restart without data */
  :: atomic { faults > 0 ->
      faults--;
      if
      :: isUp -> remember()
      :: else -> skip
      fi;
      era++; stray = 0; members = 0;
      for (v : 0 .. VERSIONS - 1) { count[v] = 0 }
      for (q : 0 .. PROCESSES - 1) {
        if
        :: call[q] == YES && outcome[q] == OPEN -> allow(1, UNDER_WAY_AT_LOSS)
        :: else -> skip
        fi;
        allow(unheard[q], REPORTED_AND_UNHEARD);
        unheard[q] = 0;
        /* what was held and not used counts as used */
        wasted = wasted + over(held[q], used[q]);
        held[q] = 0; heard[q] = 0; back[q] = 0; recorded[q] = 0
      }
      leased = 0
    }
#endif
#if CUT
  /* one process is cut off alone */
  :: atomic { cut == 0 && faults > 0 -> faults--; remember();
      if
      :: cut = bit(0)
      :: cut = bit(PROCESSES - 1)
      fi
    }
  :: atomic { cut != 0 -> cut = 0 }
#endif
#if TICKS
  /* time refills a permit of the bucket, and a part of it of each share */
  :: atomic { ticks > 0 && mayTick(0) && mayTick(1) && mayTick(PROCESSES - 1) ->
      ticks--;
      admitted = over(admitted, 1);
      for (v : 0 .. VERSIONS - 1) { count[v] = over(count[v], 1); had[v] = over(had[v], 1) }
      for (q : 0 .. PROCESSES - 1) { seen[q] = over(seen[q], 1) }
      x = min(here(turn), left[turn] + owed[turn] + 1);
      left[turn] = min(here(turn), left[turn] + 1);
      owed[turn] = over(x, left[turn]);
      turn = (turn + 1) % PROCESSES
    }
#endif
#if FAILOVER
  /* a replica that has missed writes takes over */
  :: atomic { isUp && faults > 0 && !isKept -> isKept = true; for (v : 0 .. VERSIONS - 1) { kept[v] = count[v] } }
  :: atomic { isUp && faults > 0 && isKept -> faults--; isKept = false;
      for (v : 0 .. VERSIONS - 1) { x = over(count[v], kept[v]); count[v] = min(count[v], kept[v]) }
      allow(x, MISSED_WRITES)
    }
#endif
#if CLOCK
  /* the clock of the store steps forward: it takes leases back that are used on */
  :: atomic { isUp && faults > 0 && leased > 0 -> faults--;
      for (q : 0 .. PROCESSES - 1) { count[0] = count[0] + held[q]; wasted = wasted + over(held[q], used[q]); held[q] = 0 }
      leased = 0
    }
#endif
#if VERSIONS > 1
  /* a process gets the other version of the rule */
  :: atomic { calls > 0 && version[0] == 0 && call[0] == NONE && link[0] == UP -> version[0] = 1; left[0] = shareOf(0, limitOf(0)) }
#endif
  /* nothing else can happen: each process counts in the store again, and the store counts no more than was admitted, or lost as stated */
  :: atomic { timeout ->
      for (q : 0 .. PROCESSES - 1) { assert(link[q] == UP || link[q] == OFF) }
#if TICKS == 0
      for (v : 0 .. VERSIONS - 1) { assert(count[v] + leased <= admitted + wasted) }
#endif
      break }
  od
}

init {
  atomic {
    for (q : 0 .. PROCESSES - 1) {
      if
      :: q < PROCESSES - JOINS ->
        link[q] = UP; knows[q] = era; size[q] = PROCESSES - JOINS; recorded[q] = PROCESSES - JOINS;
        members = members | bit(q);
        alive++;
        left[q] = shareOf(q, 0)
      :: else -> skip
      fi;
      if
      :: VERSIONS > 1 && q == 1 -> version[q] = 1
      :: else -> skip
      fi
    }
    run Store();
    for (q : 0 .. PROCESSES - 1) { run Process(q) }
  }
}
