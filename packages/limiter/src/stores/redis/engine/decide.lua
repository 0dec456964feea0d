-- Decisions and amendments of single calls.

-- Calls that hold a slot may last for so long, and still release no slot of others after a reset.
local HELD_US = 600000000
-- A reset is remembered for so long at least.
local RESET_US = 60000000

-- The charges of the calls of a row, each with what is known of it while one of the calls is decided.
local charges = {}

-- Reads the charges of the calls of a row, which has for each 2 * rule (+ 1 if the call may wait) and the cost; and, if they are
-- reserved, the id before all of them, and for each for how long.
local function readCharges(row)
  local isReserving = row[1] == RESERVE
  local first, width = isReserving and 4 or 3, isReserving and 3 or 2
  local size = (#row - first + 1) / width
  for c = 1, size do
    local at = first + (c - 1) * width
    local charge, code = charges[c] or { delays = {} }, row[at]
    local isWaiting = code % 2
    charges[c] = charge
    charge.rule, charge.cost, charge.mayWait = rules[(code - isWaiting) / 2], row[at + 1], isWaiting == 1
    charge.holdUs = isReserving and row[at + 2] or 0
  end
  return size
end

-- Stores of a call that is not admitted what it changes all the same: a limit that the caller has now, and when it was first seen.
local function begin(ledger, rule, own)
  if ledger.joining == own and ledger.entries[1] then join(ledger, rule, own) end
  for l, level in ipairs(own.limit.levels) do
    local moves = own.limit.moves[l]
    if moves.begin and moves.begin(level, own.states[l], now) then
      if ledger.joining == own then join(ledger, rule, own) end
      ledger.isChanged, ledger.idleAt = true, false
    end
  end
end

-- Decides each of the calls of a row by all its charges at once: all are counted, or none. Adds to the reply what each level says:
-- the delay, negative and less 1, if the call cannot pass at once; what remains; and when all is back.
local function decide(row, isCounting)
  -- names of its own, since a local name costs fewer steps than one of the engine
  local size, asked, moment, answer, last = readCharges(row), charges, now, reply, n
  for _ = 1, row[2] do
    local allowed = isCounting
    for c = 1, size do
      local charge = asked[c]
      local rule, cost, delays = charge.rule, charge.cost, charge.delays
      local ledger = nextLedger(rule)
      local own = ownEntry(ledger, rule)
      local limit, states, leased, wait, counts = own.limit, own.states, ledger.leased, 0, cost > 0
      local levels, moves = limit.levels, limit.moves
      for l = 1, #levels do
        local level = levels[l]
        local delay = leased and delayBeside(leased, moves[l], level, states[l], cost, 0) or moves[l].delay(level, states[l], moment, cost)
        if cost > 0 and own.owesUntil > moment and ledger.entries[2] then delay = delayOwing(ledger, cost, delay) end
        delays[l] = delay
        if delay > 0 then
          if delay > wait then wait = delay end
          if not charge.mayWait or delay > (level.maxWaitUs or 0) then
            counts = false
            if not rule.shadow then allowed = false end
          end
        end
      end
      charge.ledger, charge.own, charge.wait, charge.counts, charge.held = ledger, own, wait, counts, leased and heldIn(leased) or 0
    end
    for c = 1, size do
      local charge = asked[c]
      local ledger, own, cost, delays = charge.ledger, charge.own, charge.cost, charge.delays
      local limit, states, counts = own.limit, own.states, allowed and charge.counts
      local levels, allMoves, idleAt = limit.levels, limit.moves, 0
      if counts then
        if ledger.joining == own or ledger.entries[1] ~= own then use(ledger, charge.rule, own) end
        if charge.rule.isEager or charge.rule.versions[2] then joinOthers(ledger, charge.rule, own) end
        if ledger.entries[2] then recordInOthers(ledger, charge.rule, own, cost, charge.wait) end
        ledger.isChanged = true
      elseif isCounting and cost > 0 then
        begin(ledger, charge.rule, own)
      end
      for l = 1, #levels do
        local level, moves, state, delay = levels[l], allMoves[l], states[l], delays[l]
        local remaining, levelIdleAt, fullAt
        if counts then remaining, levelIdleAt, fullAt = moves.take(level, state, moment, cost, charge.wait) end
        if not levelIdleAt then
          remaining, levelIdleAt = moves.remaining(level, state, moment), moves.idleAt(level, state)
          fullAt = moves.fullAt and moves.fullAt(level, state)
        end
        if own.owesUntil > moment and ledger.entries[2] then remaining = remainingOwing(ledger, remaining) end
        if charge.held > 0 then remaining = max(0, remaining - charge.held) end
        if levelIdleAt > idleAt then idleAt = levelIdleAt end
        if delay > 0 then
          last = last + 1
          answer[last] = -min(delay + 1, NEVER)
        end
        local reset = (fullAt or levelIdleAt) - moment
        if reset < 0 then reset = 0 end
        last = last + 1
        if reset < RESETS and remaining < REMAINING and not level.needsRelease then
          answer[last] = remaining * RESETS + reset
        else
          if reset > NEVER or (level.needsRelease and reset > 0) then reset = -1 end
          answer[last], answer[last + 1], answer[last + 2] = -1, remaining, reset
          last = last + 2
        end
      end
      if counts then
        local isAlone = not (ledger.entries[2] or ledger.leased or ledger.reserved or ledger.known > moment)
        ledger.idleAt = isAlone and idleAt
        if charge.holdUs > 0 then addReserved(ledger, row[3], moment + charge.holdUs, cost, moment + charge.wait) end
      end
    end
  end
  n = last
end

-- How a window that begins with a call goes on: it ends when it was to end.
local function continueWindow(level, moves, state, windowUs, taken, endsAt)
  local used = capacityOf(level, moves) - moves.remaining(level, state, now)
  if used > 0 then endsAt = min(endsAt, moves.idleAt(level, state)) end
  for slot = 1, level.slots do state[slot] = 0 end
  moves.take(level, state, endsAt - windowUs, used + taken, 0)
end

-- Counts calls among those of a window, each as of the moment at which it was made, or a little later: of those that are known, as many
-- as are more than the window counts, at each moment to come. The row has from `at` on the period, how many moments follow, and
-- for each when it is, what is known and what is missing.
local function insertCalls(level, moves, state, row, at, most)
  local windowUs, due, inserted, leavesAfterUs = row[at], {}, 0, row[at]
  for i = row[at + 1], 0, -1 do
    local place = at + i * 3 - 1
    local afterUs, known, missing = row[place], row[place + 1], row[place + 2]
    if i == 0 then afterUs, known, missing = 0, row[at - 2], row[at - 1] end
    local used = most - moves.remaining(level, state, now + afterUs)
    local more = min(most, max(used, known) + missing) - used
    if more > inserted then
      due[#due + 1] = { now + min(windowUs, leavesAfterUs) - windowUs, more - inserted }
      inserted = more
    end
    leavesAfterUs = afterUs
  end
  for i = #due, 1, -1 do moves.insert(level, state, now, due[i][2], due[i][1]) end
end

-- Counts what was missed of a caller, as far as it fits, and replies with what does not. The row has for each level what is known
-- to be used, what is missing, and when calls leave a window: see insertCalls.
local function catchUp(ledger, rule, row)
  local own, missed, at = ownEntry(ledger, rule), 0, 4
  use(ledger, rule, own)
  for l, level in ipairs(own.limit.levels) do
    local moves, state = own.limit.moves[l], own.states[l]
    local known, missing, windowUs, moments = row[at], row[at + 1], row[at + 2], row[at + 3]
    local most, room = capacityOf(level, moves), moves.remaining(level, state, now)
    if ledger.leased then room = max(0, room - heldIn(ledger.leased)) end
    local due = max(0, known + room - most) + missing
    if level.setsMoment then due, room = known, known end
    local taken = min(due, room)
    if rule.stated then
      -- the other limits of the caller learn of the same calls
      if taken > 0 then
        moves.take(level, state, now, taken, 0)
        recordInOthers(ledger, rule, own, taken, 0)
      end
    elseif moments > 0 and moves.insert then
      insertCalls(level, moves, state, row, at + 2, most)
    elseif taken > 0 and moments > 0 and moves.endsAt and moves.endsAt(level, blank(level.slots), now) == 0 then
      continueWindow(level, moves, state, windowUs, taken, now + row[at + 1 + moments * 3])
    elseif taken > 0 then
      moves.take(level, state, now, taken, 0)
    end
    at, missed = at + 4 + moments * 3, max(missed, missing)
    n = n + 1
    reply[n] = due - taken
  end
  -- other versions get what is known to be used from their own processes
  for _, entry in ipairs(missed > 0 and not rule.stated and ledger.entries or {}) do
    if entry ~= own then record(entry, own, rule.stated, missed, 0) end
  end
  ledger.isChanged, ledger.idleAt = true, false
end

-- Forgets a caller, and remembers when, as long as charges before that could be refunded: also if nothing of the
-- caller is stored, since a call that was admitted for a later moment can be refunded until then.
local function reset(ledger, rule)
  local known = max(now + RESET_US, ledger.known)
  for _, entry in ipairs(ledger.entries) do known = max(known, entryIdleAt(entry)) end
  for _, level in ipairs(rule.limit.levels) do
    if level.needsRelease then known = max(known, now + HELD_US) end
  end
  ledger.entries, ledger.joining, ledger.reserved = {}, false, false
  ledger.since, ledger.known, ledger.isChanged, ledger.idleAt = now, min(known, now + LONGEST), true, false
end

-- Refunds a charge, or renews slots: the row has an amount, a moment and how long before that it was charged.
local function amend(ledger, rule, row, move)
  local amount, moment, wait = row[4], row[5], row[6]
  if move == 'refund' and moment - wait < ledger.since then return end
  continueChanged(ledger, rule)
  for _, entry in ipairs(ledger.entries) do
    for l, level in ipairs(entry.limit.levels) do
      local amending = entry.limit.moves[l][move]
      if amending then amending(level, entry.states[l], now, amount, moment, countsSince(rule, entry)) end
    end
  end
  ledger.isChanged, ledger.idleAt = true, false
end
