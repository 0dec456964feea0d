-- Decisions and amendments of single calls.

-- Calls that hold a slot may last for so long, and still release no slot of others after a reset.
local HELD_US = 600000000
-- A reset is remembered for so long at least.
local RESET_US = 60000000

-- Adds to the reply what one level says: the delay, negative and less 1, if the call cannot pass at once; what remains; and when
-- all is back.
local function report(level, delay, remaining, fullAt)
  if delay > 0 then
    n = n + 1
    reply[n] = -min(delay + 1, NEVER)
  end
  local reset = fullAt > now and fullAt - now or 0
  if reset > NEVER or (level.needsRelease and reset > 0) then reset = -1 end
  if remaining < REMAINING and reset >= 0 and reset < RESETS then
    n = n + 1
    reply[n] = remaining * RESETS + reset
  else
    reply[n + 1], reply[n + 2], reply[n + 3] = -1, remaining, reset
    n = n + 3
  end
end

-- The charges of a call: the rule of each, its cost and whether it may wait; and what is known of them when the call is decided.
local charged, costs, mayWait = {}, {}, {}
local places, waits, fits, delays = {}, {}, {}, {}

-- Reads the charges of the calls of a row, which has for each 2 * rule (+ 1 if the call may wait) and the cost.
local function readCharges(rules, row)
  local size = (#row - 2) / 2
  for c = 1, size do
    local code = row[c * 2 + 1]
    local isWaiting = code % 2
    charged[c], costs[c], mayWait[c] = rules[(code - isWaiting) / 2], row[c * 2 + 2], isWaiting == 1
  end
  return size
end

-- Decides a call by all its charges at once: all are counted, or none.
local function decide(size, isCounting)
  local allowed, d = true, 0
  for c = 1, size do
    local rule, cost = charged[c], costs[c]
    local levels, moves, before, states = rule.levels, rule.moves, rule.at, rule.partition.states
    local place, wait, doesFit = nextCaller(rule), 0, true
    for l = 1, #levels do
      local level = levels[l]
      local delay = moves[l].delay(level, states[before + l][place], now, cost)
      d = d + 1
      delays[d] = delay
      if delay > 0 then
        if delay > wait then wait = delay end
        if not mayWait[c] or delay > (level.maxWaitUs or 0) then doesFit = false end
      end
    end
    places[c], waits[c], fits[c] = place, wait, doesFit
    if not (doesFit or rule.shadow) then allowed = false end
  end
  d = 0
  for c = 1, size do
    local rule, cost, place = charged[c], costs[c], places[c]
    local all, allMoves, before, partition = rule.all, rule.allMoves, rule.at, rule.partition
    local states, last, idleAt, isChanged = partition.states, before + #rule.levels, 0, false
    local counts = isCounting and allowed and cost > 0 and fits[c]
    for l = 1, #all do
      local level, moves, state = all[l], allMoves[l], states[l][place]
      local isOwn = l > before and l <= last
      if counts then
        if isOwn then
          moves.take(level, state, now, cost, waits[c])
        else
          record(rule, level, moves, state, cost, waits[c])
        end
        isChanged = true
      elseif isCounting and cost > 0 and moves.begin and moves.begin(level, state, now) then
        isChanged = true
      end
      local levelIdleAt = moves.idleAt(level, state)
      if levelIdleAt > idleAt then idleAt = levelIdleAt end
      if isOwn then
        d = d + 1
        local fullAt = moves.fullAt and moves.fullAt(level, state) or levelIdleAt
        report(level, delays[d], moves.remaining(level, state, now), fullAt)
      end
    end
    if isChanged then change(partition, place, idleAt) end
  end
end

-- Counts what was missed of a caller, as far as it fits, and replies with what does not. The row has for each level what is known
-- to be used and what is missing.
local function catchUp(rule, row)
  local place, missed, states = nextCaller(rule), 0, rule.partition.states
  for l, level in ipairs(rule.levels) do
    local moves, state = rule.moves[l], states[rule.at + l][place]
    local known, missing = row[l * 2 + 2], row[l * 2 + 3]
    local room = moves.remaining(level, state, now)
    local due = max(0, known + room - (level.most or moves.remaining(level, blank(level.slots), now))) + missing
    if level.setsMoment then due, room = known, known end
    local taken = min(due, room)
    if taken > 0 then moves.take(level, state, now, taken, 0) end
    missed = max(missed, missing)
    n = n + 1
    reply[n] = due - taken
  end
  -- other versions get what is known to be used from their own processes
  for l, level in ipairs(missed > 0 and rule.all or {}) do
    if l <= rule.at or l > rule.at + #rule.levels then record(rule, level, rule.allMoves[l], states[l][place], missed, 0) end
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
  local partition, place, idleAt = rule.partition, nextCaller(rule), now + RESET_US
  if partition.about == '' and partition.changes == 0 then return end
  for l, level in ipairs(rule.all) do
    local state = partition.states[l][place]
    idleAt = max(idleAt, rule.allMoves[l].idleAt(level, state), level.needsRelease and now + HELD_US or 0)
    partition.states[l][place] = blank(level.slots)
  end
  change(partition, place, 0)
  partition.resets = partition.resets or {}
  partition.resets[partition.fields[partition.offset + place]] = now
  partition.resetAt, partition.isChanged, partition.last = now, true, max(partition.last, idleAt)
end

-- Refunds a charge, or renews leases: the row has an amount, a moment and how long before that it was charged.
local function amend(rule, row, move)
  local partition, place, amount, moment, wait = rule.partition, nextCaller(rule), row[4], row[5], row[6]
  local field = partition.fields[partition.offset + place]
  if move == 'refund' and isForgotten(partition, field, moment - wait) then return end
  for l, level in ipairs(rule.all) do
    local amending = rule.allMoves[l][move]
    if amending then amending(level, partition.states[l][place], now, amount, moment, level.start or rule.since) end
  end
  changeAmended(rule, place)
end
