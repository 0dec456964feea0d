-- Reservations of calls: amounts that were charged in advance, and are settled when it is known what was used.
--
-- The charge itself is counted like any other. Behind the states of a caller, and the permits that are held of it, stand the
-- reservations that are not settled yet: of each the id, when it ends, the amount, and the moment that it was counted at. Then until
-- when there may be others, for which there was no room; when the first one ends, and the last; and how many there are, negative and
-- less a half. What ends unsettled is refunded as of its end.

local MOST_RESERVED, RESERVED_BYTES, TAIL_BYTES, LONGEST_HOLD = 1024, 32, 32, 86400000000
-- So long it is known that a reservation was settled after its end.
local SETTLED_US = 60000000

-- The reservations of a caller, if it has any, and the rest of its text.
local function reservedIn(raw)
  local mark = #raw >= TAIL_BYTES + 8 and fetch('<d', raw, #raw - 7) or 0
  if mark >= 0 or mark == ceil(mark) then return nil, raw end
  local count = -mark - 0.5
  local size = #raw - TAIL_BYTES - count * RESERVED_BYTES
  if not isCount(count) or count > MOST_RESERVED or size < 8 then
    ignored = ignored + 1
    return nil, ''
  end
  local unlisted, first, last = fetch('<ddd', raw, #raw - TAIL_BYTES + 1)
  local text = string.sub(raw, size + 1, #raw - TAIL_BYTES)
  -- the clock may have stepped back
  local latest = now + LONGEST_HOLD
  return { text = text, unlisted = min(unlisted, latest), first = first, last = min(last, latest) }, string.sub(raw, 1, size)
end

local function reservedText(list)
  if not list or (list.text == '' and list.unlisted <= now) then return '' end
  return list.text .. pack('<dddd', list.unlisted, list.first, list.last, -#list.text / RESERVED_BYTES - 0.5)
end

-- Lists an amount that was just counted.
local function addReserved(partition, place, id, endsAt, amount, moment)
  partition.reserved = partition.reserved or {}
  local list = partition.reserved[place] or { text = '', unlisted = 0, first = huge, last = 0 }
  partition.reserved[place] = list
  list.last = max(list.last, endsAt)
  if #list.text >= MOST_RESERVED * RESERVED_BYTES then
    list.unlisted = max(list.unlisted, endsAt)
    return
  end
  list.text = list.text .. pack('<dddd', id, endsAt, amount, moment)
  list.first = min(list.first, endsAt)
end

-- Takes a reservation off the list; returns its amount, nothing if it is not there.
local function takeReserved(list, id)
  local name = pack('<d', id)
  local at = string.find(list.text, name, 1, true)
  -- another number may have the same bytes
  while at and at % RESERVED_BYTES ~= 1 do at = string.find(list.text, name, at + 1, true) end
  if not at then return nil end
  local _, _, amount = fetch('<ddd', list.text, at)
  if amount > 0 then
    list.text = string.sub(list.text, 1, at - 1) .. string.sub(list.text, at + RESERVED_BYTES)
  end
  return amount
end

local function refundAll(rule, place, at, amount, moment)
  for l, level in ipairs(rule.all) do
    local since = level.start or rule.since or -1
    rule.allMoves[l].refund(level, rule.partition.states[l][place], max(at, since), amount, moment, since)
  end
end

-- Refunds what was not settled in time, each as of its end; before anything else is done with a caller.
local function releaseEnded(rule, place, list)
  if list.first > now then return end
  local ended, kept = {}, {}
  list.first = huge
  for at = 1, #list.text, RESERVED_BYTES do
    local _, endsAt, amount, moment = fetch('<dddd', list.text, at)
    endsAt = min(endsAt, now + LONGEST_HOLD)
    if endsAt <= now then
      ended[#ended + 1] = { at = at, endsAt = endsAt, amount = amount, moment = moment }
    else
      kept[#kept + 1] = string.sub(list.text, at, at + RESERVED_BYTES - 1)
      list.first = min(list.first, endsAt)
    end
  end
  list.text = table.concat(kept)
  table.sort(ended, function(a, b) return a.endsAt < b.endsAt or (a.endsAt == b.endsAt and a.at < b.at) end)
  for _, one in ipairs(ended) do
    if one.amount > 0 then refundAll(rule, place, one.endsAt, one.amount, one.moment) end
  end
end

-- Counts what was used beyond a reservation: beyond the limit, or up to it.
local function overdraw(rule, place, cost, isDebt)
  local states, amount = rule.partition.states, cost
  if not isDebt then
    for l, level in ipairs(rule.levels) do amount = min(amount, rule.moves[l].remaining(level, rule.states[l][place], now)) end
    if amount <= 0 then return end
  end
  for l, level in ipairs(rule.all) do
    local moves, state = rule.allMoves[l], states[l][place]
    if isDebt and moves.overdraw then
      moves.overdraw(level, state, now, amount)
    elseif isOwn(rule, l) then
      local room = min(amount, moves.remaining(level, state, now))
      if room > 0 then moves.take(level, state, now, room, 0) end
    else
      record(rule, level, moves, state, amount, 0)
    end
  end
end
