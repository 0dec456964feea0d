-- Decisions and amendments of single calls.

-- Calls that hold a slot may last for so long, and still release no slot of others after a reset.
local HELD_US = 600000000
-- A reset is remembered for so long at least.
local RESET_US = 60000000

-- The charges of the calls of a row, each with what is known of it while one of the calls is decided.
local charges = {}

-- Reads the charges of the calls of a row, which has for each 2 * rule (+ 1 if the call may wait) and the cost; and, if they are
-- reserved, the id before all of them, and for each for how long.
local function readCharges(rules, row)
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

-- Counts a call in the levels of the other versions of its rule if it is admitted; returns from when on none of them matters, and
-- whether one has changed.
local function recordInOthers(rule, place, cost, wait, counts, isCounting)
  local idleAt, isChanged, states = 0, counts, rule.partition.states
  for l, level in ipairs(rule.all) do
    local moves, state = rule.allMoves[l], states[l][place]
    if not isOwn(rule, l) then
      if counts then
        record(rule, level, moves, state, cost, wait)
      elseif isCounting and moves.begin and moves.begin(level, state, now) then
        isChanged = true
      end
      idleAt = max(idleAt, moves.idleAt(level, state))
    end
  end
  return idleAt, isChanged
end

-- Decides each of the calls of a row by all its charges at once: all are counted, or none. Adds to the reply what each level says:
-- the delay, negative and less 1, if the call cannot pass at once; what remains; and when all is back.
local function decide(rules, row, isCounting)
  -- names of its own, since a local name costs fewer steps than one of the engine
  local size, asked, moment, answer, last = readCharges(rules, row), charges, now, reply, n
  for _ = 1, row[2] do
    local allowed = isCounting
    for c = 1, size do
      local charge = asked[c]
      local rule, cost, delays = charge.rule, charge.cost, charge.delays
      local levels, moves, partition, states = rule.levels, rule.moves, rule.partition, rule.states
      local place, wait, counts = nextCaller(rule, partition), 0, cost > 0
      local endings = partition.endings and partition.endings[place]
      for l = 1, #levels do
        local level, state = levels[l], states[l][place]
        local delay = endings and delayBeside(endings, moves[l], level, state, cost, 0) or moves[l].delay(level, state, moment, cost)
        delays[l] = delay
        if delay > 0 then
          if delay > wait then wait = delay end
          if not charge.mayWait or delay > (level.maxWaitUs or 0) then
            counts = false
            if not rule.shadow then allowed = false end
          end
        end
      end
      charge.place, charge.wait, charge.counts, charge.held = place, wait, counts, endings and heldIn(endings) or 0
    end
    for c = 1, size do
      local charge = asked[c]
      local rule, cost, place, delays = charge.rule, charge.cost, charge.place, charge.delays
      local levels, allMoves, states = rule.levels, rule.moves, rule.states
      local counts = allowed and charge.counts
      local idleAt, isChanged = 0, counts
      if rule.hasOthers then
        idleAt, isChanged = recordInOthers(rule, place, cost, charge.wait, counts, isCounting and cost > 0)
      end
      for l = 1, #levels do
        local level, moves, state, delay = levels[l], allMoves[l], states[l][place], delays[l]
        local remaining, levelIdleAt, fullAt
        if counts then
          remaining, levelIdleAt, fullAt = moves.take(level, state, moment, cost, charge.wait)
        elseif isCounting and cost > 0 and moves.begin and moves.begin(level, state, moment) then
          isChanged = true
        end
        if not levelIdleAt then
          remaining, levelIdleAt = moves.remaining(level, state, moment), moves.idleAt(level, state)
          fullAt = moves.fullAt and moves.fullAt(level, state)
        end
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
      if isChanged then rule.partition.idleAts[place] = idleAt end
      if counts and charge.holdUs > 0 then
        addReserved(rule.partition, place, row[3], moment + charge.holdUs, cost, moment + charge.wait)
      end
    end
  end
  return last
end

-- How a window that begins with a call goes on: it ends when it was to end.
local function continueWindow(level, moves, state, windowUs, taken, endsAt)
  local used = (level.most or moves.remaining(level, blank(level.slots), now)) - moves.remaining(level, state, now)
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
local function catchUp(rule, row)
  local place, missed, states, at = nextCaller(rule, rule.partition), 0, rule.partition.states, 4
  local endings = rule.partition.endings and rule.partition.endings[place]
  for l, level in ipairs(rule.levels) do
    local moves, state = rule.moves[l], states[rule.at + l][place]
    local known, missing, windowUs, moments = row[at], row[at + 1], row[at + 2], row[at + 3]
    local most = level.most or moves.remaining(level, blank(level.slots), now)
    local room = moves.remaining(level, state, now)
    if endings then room = max(0, room - heldIn(endings)) end
    local due = max(0, known + room - most) + missing
    if level.setsMoment then due, room = known, known end
    local taken = min(due, room)
    if moments > 0 and moves.insert then
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
  for l, level in ipairs(missed > 0 and rule.all or {}) do
    if not isOwn(rule, l) then record(rule, level, rule.allMoves[l], states[l][place], missed, 0) end
  end
  changeAmended(rule, place)
end

-- Whether the caller was reset after a charge.
local function isForgotten(partition, field, chargedAt)
  if chargedAt > partition.resetAt then return false end
  local hashes, mark = shardsWith(partition, field), '!' .. field
  table.insert(hashes, partition.current)
  table.insert(hashes, partition.previous)
  for _, hash in ipairs(hashes) do
    local raw = readFields(hash, mark)[1]
    if raw and #raw == 8 and chargedAt <= fetch('<d', raw) then return true end
  end
  local resetAt = partition.resets and partition.resets[field]
  return resetAt and chargedAt <= resetAt or false
end

-- Forgets a caller, and remembers when, as long as charges before that could be refunded: also if nothing of the
-- caller is stored, since a call that was admitted for a later moment can be refunded until then.
local function reset(rule)
  local partition, place, idleAt = rule.partition, nextCaller(rule, rule.partition), now + RESET_US
  if partition.about == '' and not next(partition.idleAts) then return end
  for l, level in ipairs(rule.all) do
    local state = partition.states[l][place]
    idleAt = max(idleAt, rule.allMoves[l].idleAt(level, state), level.needsRelease and now + HELD_US or 0)
    partition.states[l][place] = blank(level.slots)
  end
  partition.idleAts[place] = 0
  if partition.reserved then partition.reserved[place] = nil end
  partition.resets = partition.resets or {}
  partition.resets[args[partition.offset + place]] = now
  partition.resetAt, partition.isChanged, partition.last = now, true, max(partition.last, idleAt)
end

-- Refunds a charge, or renews leases: the row has an amount, a moment and how long before that it was charged.
local function amend(rule, row, move)
  local partition, amount, moment, wait = rule.partition, row[4], row[5], row[6]
  local place = nextCaller(rule, partition)
  local field = args[partition.offset + place]
  if move == 'refund' and isForgotten(partition, field, moment - wait) then return end
  for l, level in ipairs(rule.all) do
    local amending = rule.allMoves[l][move]
    if amending then amending(level, partition.states[l][place], now, amount, moment, level.start or rule.since) end
  end
  changeAmended(rule, place)
end

-- Settles a reservation, once. The row has its id, what was reserved, the moment that it was counted at and the wait before that, what
-- was used, when it ends, and whether more than was reserved is counted beyond the limit. One that has ended was refunded: all that
-- was used is counted. An id of 0 is that of no reservation.
local function settle(rule, row)
  local partition, id, amount, moment, wait, actual, endsAt = rule.partition, row[4], row[5], row[6], row[7], row[8], row[9]
  local place = nextCaller(rule, partition)
  local field, list = args[partition.offset + place], partition.reserved and partition.reserved[place]
  local found = list and id > 0 and takeReserved(list, id)
  if found == 0 or isForgotten(partition, field, moment - wait) then return end
  if not found and endsAt > now and not (list and list.unlisted > now) then return end
  if not found and endsAt <= now then
    amount = 0
    if id > 0 then addReserved(partition, place, id, now + SETTLED_US, 0, moment) end
  end
  if actual < amount then
    refundAll(rule, place, now, amount - actual, moment)
  elseif actual > amount then
    overdraw(rule, place, actual - amount, row[10] == 1)
  end
  changeAmended(rule, place)
end

-- Reports permits that a holder has used, and reserves others. The row has which of the last keys is that of the holder, the number
-- of the request, how many permits it keeps, needs and wants, and then of those used how many and how long ago. Replies with what is left
-- of each level, when all is back and when one is free; and how many permits are held, for how long, when to ask again, the moment of
-- the newest call that was counted before, and how many reservations could not be read.
local function lease(rule, row)
  local partition = rule.partition
  local place, name = nextCaller(rule, partition), keys[#keys - request.holders + row[4]]
  partition.endings = partition.endings or {}
  local endings = partition.endings[place] or {}
  partition.endings[place] = endings
  local sequence, amount, endsAt = readReservation(name)
  local retryUs, newest = 0, 0
  if not sequence or sequence < row[5] then
    newest = newestOf(rule, place)
    amount, endsAt, retryUs = renew(rule, place, endings, row, amount or 0, endsAt)
    call('SET', name, pack('<ddd', row[5], amount, endsAt), 'PX', RESERVATION_MS)
    changeAmended(rule, place)
  elseif sequence > row[5] then
    amount = 0
  end
  local held = heldIn(endings)
  for l, level in ipairs(rule.levels) do
    local moves, state = rule.moves[l], rule.states[l][place]
    local fullAt = moves.fullAt and moves.fullAt(level, state) or moves.idleAt(level, state)
    reply[n + 1], reply[n + 2] = max(0, moves.remaining(level, state, now) - held), min(max(0, fullAt - now), NEVER)
    reply[n + 3] = min(delayBeside(endings, moves, level, state, 1, amount), NEVER)
    n = n + 3
  end
  local lastsUs = amount == 0 and 0 or max(0, min(LEASE_US, floor((endsAt - now) * (1 - CLOCK_MARGIN))))
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5] = amount, lastsUs, retryUs, newest, ignored
  n, ignored = n + 5, 0
end
