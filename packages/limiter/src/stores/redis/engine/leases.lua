-- Permits that processes hold in advance, as reservations.ts has them.
--
-- A ledger has for each moment at which permits come back the moment, how many they are and how many processes hold them. What a
-- process was granted last is under a key of its own: the number of its request, the amount, and when it ends.

local MOST_ENDINGS, RESERVATION_MS, LATEST_US = 64, 3000, LEASE_US + 2 * RECLAIM_US
-- Leases that could not be read, and were not reported to a process yet.
local ignored = 0

local function isCount(number)
  return number >= 0 and number == floor(number) and number < NEVER
end

-- The permits that are leased, the first ones to end first.
function readLeased(list)
  if not list then return false end
  local endings = {}
  if type(list) ~= 'table' or #list > MOST_ENDINGS * 3 or not areNumbers(list, 1, #list) then
    ignored = ignored + 1
    return false
  end
  for at = 1, #list - 2, 3 do
    local endsAt, amount, holders = list[at], list[at + 1], list[at + 2]
    if endsAt > 0 and isCount(amount) and isCount(holders) then
      -- the clock may have stepped back
      endings[#endings + 1] = { endsAt = min(endsAt, now + LATEST_US), amount = amount, holders = holders }
    else
      ignored = ignored + 1
    end
  end
  return endings
end

function leasedText(endings)
  if not (endings and endings[1]) then return false end
  local list = {}
  for e, ending in ipairs(endings) do
    list[e * 3 - 2], list[e * 3 - 1], list[e * 3] = ending.endsAt, ending.amount, ending.holders
  end
  return list
end

-- How many permits are held, and by how many.
local function heldIn(endings)
  local held, holders = 0, 0
  for e = 1, #endings do held, holders = held + endings[e].amount, holders + endings[e].holders end
  return held, holders
end

-- Counts permits that were used no later than a moment, in one state.
local function bookIn(level, moves, state, moment, cost)
  if moves.record then
    moves.record(level, state, moment, cost, 0, false)
  else
    moves.take(level, state, moment, cost, 0)
  end
end

local function delayWith(held, moves, level, state, cost)
  local delay = moves.delay(level, state, now, cost + held)
  if delay < huge or held == 0 then return delay end
  -- so much never fits at once: first, what is held is used
  local copy = copyState(state)
  bookIn(level, moves, copy, now, held)
  return moves.delay(level, copy, now, cost)
end

-- How long until a cost fits beside permits that are held: at the latest when time has freed it, or when those may be back. The process
-- that asks holds `own` of them, and uses them itself.
local function delayBeside(endings, moves, level, state, cost, own)
  local held = heldIn(endings)
  if held == 0 or cost == 0 then return moves.delay(level, state, now, cost) end
  local delay = delayWith(held, moves, level, state, cost)
  if delay == 0 or own == held then return delay end
  return min(delay, max(delayWith(own, moves, level, state, cost), RETURNED_US))
end

-- The moment of the newest call that a window counts; 0 if there is none.
local function newestOf(own)
  local newest = 0
  for l, level in ipairs(own.limit.levels) do
    local idleAt = level.windowUs and own.limit.moves[l].idleAt(level, own.states[l]) or 0
    if idleAt > now then newest = max(newest, idleAt - level.windowUs) end
  end
  return newest
end

-- Counts permits that were used no later than a moment, in the entry that has granted them and in all others.
local function book(ledger, own, moment, cost)
  if cost == 0 then return end
  for l, level in ipairs(own.limit.levels) do bookIn(level, own.limit.moves[l], own.states[l], moment, cost) end
  for _, entry in ipairs(ledger.entries) do
    if entry ~= own then record(entry, own, false, cost, 0) end
  end
  ledger.isChanged = true
end

-- Counts the permits of processes that have not reported in time; before anything else is done with a caller.
function bookEnded(ledger, rule)
  local endings = ledger.leased
  while endings[1] and endings[1].endsAt <= now do
    if not ledger.entries[1] then use(ledger, rule, ownEntry(ledger, rule)) end
    -- at the last moment before a window ends, so that the next one has nothing of it
    book(ledger, ledger.entries[1], endings[1].endsAt - 1, endings[1].amount)
    table.remove(endings, 1)
  end
end

-- From when on nothing of a caller matters, if all that is held of it counts as used when it ends.
function idleWithLeases(ledger)
  local idleAt = 0
  for _, entry in ipairs(ledger.entries) do
    for l, level in ipairs(entry.limit.levels) do
      local copy, moves = copyState(entry.states[l]), entry.limit.moves[l]
      for _, ending in ipairs(ledger.leased) do
        if ending.amount > 0 then bookIn(level, moves, copy, ending.endsAt - 1, ending.amount) end
        idleAt = max(idleAt, ending.endsAt)
      end
      idleAt = max(idleAt, moves.idleAt(level, copy))
    end
  end
  return idleAt
end

-- What a process was granted last; nothing if that has ended.
local function readLease(name, raw)
  if not raw then return nil end
  local values = #raw < 100 and valuesOf(raw)
  if values and #values == 3 and areNumbers(values, 1, 3) then
    local sequence, amount, endsAt = values[1], values[2], values[3]
    -- a window that has not begun has nothing to hold: such a lease has ended at once
    if isCount(sequence) and isCount(amount) and endsAt >= 0 then
      if endsAt <= now then return nil end
      return sequence, amount, min(endsAt, now + LATEST_US)
    end
  end
  ignored = ignored + 1
  call('UNLINK', name)
end

local function release(endings, endsAt, amount)
  for e, ending in ipairs(endings) do
    if ending.endsAt == endsAt then
      ending.amount, ending.holders = max(0, ending.amount - amount), ending.holders - 1
      if ending.holders < 1 then table.remove(endings, e) end
      return
    end
  end
end

local function reserve(endings, endsAt, amount)
  local at = 1
  while endings[at] and endings[at].endsAt < endsAt do at = at + 1 end
  local ending = endings[at]
  if ending and ending.endsAt == endsAt then
    ending.amount, ending.holders = ending.amount + amount, ending.holders + 1
  else
    table.insert(endings, at, { endsAt = endsAt, amount = amount, holders = 1 })
  end
end

-- When a lease granted now ends: soon, and with the window in which it was granted.
local function endOf(own)
  local endsAt = ceil((now + LEASE_US + RECLAIM_US) / RECLAIM_US) * RECLAIM_US
  for l, level in ipairs(own.limit.levels) do
    local ends = own.limit.moves[l].endsAt
    if ends then endsAt = min(endsAt, ends(level, own.states[l], now)) end
  end
  return endsAt
end

-- How many more permits a process gets: those that its calls wait for, if there are any, and those that it wants in advance; and, if too
-- little is left to grant all of these, after how long it asks again.
local function grant(own, taken, kept, needed, wanted, holders, endsAt)
  local must, ahead, isScarce = needed, wanted, false
  if endsAt <= now then must, ahead, isScarce = 0, 0, true end
  for l, level in ipairs(own.limit.levels) do
    local moves, state = own.limit.moves[l], own.states[l]
    local least = floor(capacityOf(level, moves) * SHARE / holders)
    local room = max(0, moves.remaining(level, state, now) - taken)
    must = min(must, room)
    local share = max(least, floor(room * SHARE_OF_ROOM / holders)) - kept
    ahead = least < LEAST_SHARE and 0 or max(0, min(ahead, share))
    -- as much is left for the others; of the last permits none are granted in advance, for others could not use them
    local part = floor((room - must) / (2 * holders))
    if part < ahead then isScarce = true end
    ahead = min(ahead, part < LEAST_SHARE and 0 or part)
  end
  return must + ahead, isScarce and min((holders + 3) * TURN_US, LONGEST_TURN_US) or 0
end

-- Counts what a process reports, and renews what it holds; returns how much that is, until when, and when to ask again.
local function renewLease(ledger, own, row, before, endedAt)
  local endings, left = ledger.leased, before
  if endedAt then release(endings, endedAt, before) end
  for at = 8, #row, 2 do
    local counted = min(row[at], left)
    left = left - counted
    book(ledger, own, now - floor(row[at + 1] * (1 - CLOCK_MARGIN)), counted)
  end
  local kept = min(row[5], left)
  local held, holders = heldIn(endings)
  local endsAt = endOf(own)
  local granted, retryUs = grant(own, held + kept, kept, row[6], row[7], holders + 1, endsAt)
  if endsAt > now then reserve(endings, endsAt, kept + granted) end
  return kept + granted, endsAt, retryUs
end

-- Reports permits that a process has used, and leases others. The row has the number of the request, how many permits the process keeps,
-- needs and wants, and then of those used how many and how long ago. Replies with what is left of each level, when all is back and when
-- one is free; and how many permits are held, for how long, when to ask again, the moment of the newest call that was counted before, and
-- how many leases could not be read.
local function lease(ledger, rule, row, name, raw)
  local own = ownEntry(ledger, rule)
  local sequence, amount, endsAt = readLease(name, raw)
  local retryUs, newest = 0, 0
  ledger.leased = ledger.leased or {}
  if not sequence or sequence < row[4] then
    use(ledger, rule, own)
    newest = newestOf(own)
    amount, endsAt, retryUs = renewLease(ledger, own, row, amount or 0, endsAt)
    call('SET', name, packNumbers(row[4], amount, endsAt), 'PX', RESERVATION_MS)
    ledger.isChanged, ledger.idleAt = true, false
  elseif sequence > row[4] then
    amount = 0
  end
  local held = heldIn(ledger.leased)
  for l, level in ipairs(own.limit.levels) do
    local moves, state = own.limit.moves[l], own.states[l]
    local fullAt = moves.fullAt and moves.fullAt(level, state) or moves.idleAt(level, state)
    reply[n + 1], reply[n + 2] = max(0, moves.remaining(level, state, now) - held), min(max(0, fullAt - now), NEVER)
    reply[n + 3] = min(delayBeside(ledger.leased, moves, level, state, 1, amount), NEVER)
    n = n + 3
  end
  local lastsUs = amount == 0 and 0 or max(0, min(LEASE_US, floor((endsAt - now) * (1 - CLOCK_MARGIN))))
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5] = amount, lastsUs, retryUs, newest, ignored
  n, ignored = n + 5, 0
end
