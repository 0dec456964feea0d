-- Permits that processes hold in advance, as reservations.ts has them.
--
-- If permits of a caller are held, its text goes on behind its states: for each moment at which reservations end the moment, the
-- permits held and how many hold them; and at its end how many such moments there are, negative. What a holder was granted last is a
-- key of its own: the number of the request, the amount, and when it ends.

local MOST_ENDINGS, RESERVATION_MS, LATEST_US = 64, 3000, LEASE_US + 2 * RECLAIM_US
-- Permits that another version has granted are recorded in so many pieces at most.
local MOST_PIECES = 64
-- Reservations that could not be read, and were not reported to a process yet.
local ignored = 0

local function isCount(number)
  return number >= 0 and number == floor(number) and number < NEVER
end

-- What is held of a caller, if anything is, and the text of its states.
local function endingsIn(raw)
  local last = #raw >= 40 and fetch('<d', raw, #raw - 7) or 0
  local count = last < 0 and -last or 0
  if count == 0 then return nil, raw end
  local size, endings = #raw - 8 - count * 24, {}
  if not isCount(count) or count > MOST_ENDINGS or size < 8 then
    ignored = ignored + 1
    return nil, ''
  end
  for e = 1, count do
    local endsAt, amount, holders = fetch('<ddd', raw, size + e * 24 - 23)
    if endsAt > 0 and isCount(amount) and isCount(holders) then
      -- the clock may have stepped back
      endings[#endings + 1] = { endsAt = min(endsAt, now + LATEST_US), amount = amount, holders = holders }
    else
      ignored = ignored + 1
    end
  end
  return endings, string.sub(raw, 1, size)
end

local function endingsText(endings)
  if not (endings and endings[1]) then return '' end
  local texts = {}
  for e, ending in ipairs(endings) do texts[e] = pack('<ddd', ending.endsAt, ending.amount, ending.holders) end
  return table.concat(texts) .. pack('<d', -#endings)
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

local function stateCopy(state)
  local copy = {}
  for name, number in pairs(state) do copy[name] = number end
  return copy
end

local function delayWith(held, moves, level, state, cost)
  local delay = moves.delay(level, state, now, cost + held)
  if delay < huge or held == 0 then return delay end
  -- so much never fits at once: first, what is held is used
  local copy = stateCopy(state)
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
local function newestOf(rule, place)
  local newest = 0
  for l, level in ipairs(rule.levels) do
    local idleAt = level.windowUs and rule.moves[l].idleAt(level, rule.states[l][place]) or 0
    if idleAt > now then newest = max(newest, idleAt - level.windowUs) end
  end
  return newest
end

local function book(rule, place, moment, cost)
  if cost == 0 then return end
  for l, level in ipairs(rule.all) do
    local moves, state = rule.allMoves[l], rule.partition.states[l][place]
    if isOwn(rule, l) then
      bookIn(level, moves, state, moment, cost)
    else
      -- another version counts ahead what does not fit, which it cannot with more at once than its limit
      local most = level.most or moves.remaining and moves.remaining(level, blank(level.slots), now) or cost
      local left, piece = cost, max(1, ceil(cost / MOST_PIECES), most)
      while left > 0 do
        record(rule, level, moves, state, min(left, piece), 0)
        left = left - piece
      end
    end
  end
end

-- Counts the permits of holders that have not reported in time; before anything else is done with a caller.
local function bookEnded(rule, place, endings)
  while endings[1] and endings[1].endsAt <= now do
    -- at the last moment before a window ends, so that the next one has nothing of it
    book(rule, place, endings[1].endsAt - 1, endings[1].amount)
    table.remove(endings, 1)
  end
end

-- From when on nothing of a caller matters, if all that is held of it counts as used when it ends.
local function idleWith(partition, place, endings)
  local idleAt = 0
  for l, level in ipairs(partition.all) do
    local copy, moves = stateCopy(partition.states[l][place]), movesOf(level)
    for _, ending in ipairs(endings) do
      if ending.amount > 0 then bookIn(level, moves, copy, ending.endsAt - 1, ending.amount) end
      idleAt = max(idleAt, ending.endsAt)
    end
    idleAt = max(idleAt, moves.idleAt(level, copy))
  end
  return idleAt
end

-- What a holder was granted last; nothing if that has ended.
local function readReservation(name)
  local raw = redis.pcall('GET', name)
  if not raw then return nil end
  if type(raw) == 'string' and #raw == 24 then
    local sequence, amount, endsAt = fetch('<ddd', raw)
    -- a window that has not begun has nothing to hold: such a reservation has ended at once
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

-- When a reservation made now ends: soon, and with the window in which it was made.
local function endOf(rule, place)
  local endsAt = ceil((now + LEASE_US + RECLAIM_US) / RECLAIM_US) * RECLAIM_US
  for l, level in ipairs(rule.levels) do
    local ends = rule.moves[l].endsAt
    if ends then endsAt = min(endsAt, ends(level, rule.states[l][place], now)) end
  end
  return endsAt
end

-- How many more permits a holder gets: those that its calls wait for, if there are any, and those that it wants in advance; and, if too
-- little is left to grant all of these, after how long it asks again.
local function grant(rule, place, taken, kept, needed, wanted, holders, endsAt)
  local must, ahead, isScarce = needed, wanted, false
  if endsAt <= now then must, ahead, isScarce = 0, 0, true end
  for l, level in ipairs(rule.levels) do
    local moves, state = rule.moves[l], rule.states[l][place]
    local least = floor((level.most or moves.remaining(level, blank(level.slots), now)) * SHARE / holders)
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

-- Counts what a holder reports, and renews what it holds; returns how much that is, until when, and when to ask again.
local function renew(rule, place, endings, row, before, endedAt)
  local left = before
  if endedAt then release(endings, endedAt, before) end
  for at = 9, #row, 2 do
    local counted = min(row[at], left)
    left = left - counted
    book(rule, place, now - floor(row[at + 1] * (1 - CLOCK_MARGIN)), counted)
  end
  local kept = min(row[6], left)
  local held, holders = heldIn(endings)
  local endsAt = endOf(rule, place)
  local granted, retryUs = grant(rule, place, held + kept, kept, row[7], row[8], holders + 1, endsAt)
  reserve(endings, endsAt, kept + granted)
  return kept + granted, endsAt, retryUs
end
