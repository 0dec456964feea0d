-- Permits that processes hold in advance, as reservations.ts has them.
--
-- If permits of a caller are held, its text goes on behind its states: for each moment at which reservations end the moment, the
-- permits held and how many hold them; and at its end how many such moments there are, negative. What a holder was granted last is a
-- key of its own: the number of the request, the amount, and when it ends.

local MOST_ENDINGS, RESERVATION_MS, LATEST_US = 64, 3000, LEASE_US + 2 * RECLAIM_US
-- Permits that another version has granted are recorded in so many pieces at most.
local MOST_PIECES = 64
-- Multiples of it, without their whole parts, are spread evenly.
local GOLDEN = 0.618033988749895
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

-- How many permits are held, until when at most, and by how many.
local function heldIn(endings)
  local held, endsAt, holders = 0, 0, 0
  for e = 1, #endings do
    held, endsAt, holders = held + endings[e].amount, endings[e].endsAt, holders + endings[e].holders
  end
  return held, endsAt, holders
end

-- How long until a cost fits beside permits that are held.
local function delayBeside(endings, moves, level, state, cost)
  local held, endsAt = heldIn(endings)
  if held == 0 or cost == 0 then return moves.delay(level, state, now, cost) end
  local delay = moves.delay(level, state, now, cost + held)
  if delay < huge then return delay end
  -- as much as is held never fits beside it; the permits held end before that matters
  return max(moves.delay(level, state, now, cost), endsAt - now)
end

-- Counts permits that were used no later than a moment, in one state.
local function bookIn(level, moves, state, moment, cost)
  if moves.record then
    moves.record(level, state, moment, cost, 0, false)
  else
    moves.take(level, state, moment, cost, 0)
  end
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
    local copy, moves = {}, movesOf(level)
    for name, number in pairs(partition.states[l][place]) do copy[name] = number end
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
    if isCount(sequence) and isCount(amount) and endsAt > 0 then
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

-- How long a holder waits for others, if all of them wait: some less and some longer, so that they do not ask all at once.
local function turnUs(chunk, holders, perUs, sequence)
  return floor(sequence * GOLDEN % 1 * max((holders - 1) * chunk / perUs, holders * TURN_US))
end

-- How many more permits a holder gets; or, if there are too few, after how long it can get some, and whether calls are refused until
-- then.
local function grant(rule, place, sequence, taken, kept, wanted, holders, endsAt)
  local granted, retryUs, isClosed = endsAt > now and wanted or 0, 0, false
  for l, level in ipairs(rule.levels) do
    local moves, state = rule.moves[l], rule.states[l][place]
    local perUs = moves.perUs and moves.perUs(level) or 0
    local least = floor((level.most or moves.remaining(level, blank(level.slots), now)) * SHARE / holders)
    local room = moves.remaining(level, state, now) - taken
    local most = least < LEAST_SHARE and 0 or min(granted, max(least, floor(room * SHARE_OF_ROOM / holders)) - kept)
    local chunk = min(most, max(LEAST_SHARE, ceil(perUs * min(CHUNK_US, (level.reportUs or 0) / 2))))
    local part = floor(room / (2 * holders))
    if part < chunk then
      local wait = moves.delay(level, state, now, taken + chunk)
      if wait == 0 then
        part = chunk
      elseif wait <= SOON_US then
        -- soon there is more, and a few permits at a time save nothing
        part, isClosed, retryUs = 0, true, max(retryUs, wait + turnUs(chunk, holders, perUs, sequence))
      else
        retryUs = max(retryUs, wait)
      end
    end
    granted = max(0, min(most, part))
  end
  if granted >= LEAST_SHARE or wanted == 0 then return granted, 0, false end
  return 0, min(retryUs, LEASE_US), isClosed
end

-- Counts what a holder reports, and renews what it holds; returns how much that is, until when, when to ask again, and
-- whether calls are refused until then.
local function renew(rule, place, endings, row, before, endedAt)
  local sequence, left = row[5], before
  if endedAt then release(endings, endedAt, before) end
  for at = 8, #row, 2 do
    local counted = min(row[at], left)
    left = left - counted
    book(rule, place, now - floor(row[at + 1] * (1 - CLOCK_MARGIN)), counted)
  end
  local kept = min(row[6], left)
  local held, _, holders = heldIn(endings)
  local endsAt = endOf(rule, place)
  local granted, retryUs, isClosed = grant(rule, place, sequence, held + kept, kept, row[7], holders + 1, endsAt)
  reserve(endings, endsAt, kept + granted)
  return kept + granted, endsAt, retryUs, isClosed
end
